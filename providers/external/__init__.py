"""What a cloud implements, and all that it may import beside `runtime`."""
