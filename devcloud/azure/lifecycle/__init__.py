"""What requests ask of a server, and what operations make of it. Pure."""
