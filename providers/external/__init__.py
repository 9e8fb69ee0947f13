"""What a cloud implements, and all that it may import besides `apis` and `runtime`."""
