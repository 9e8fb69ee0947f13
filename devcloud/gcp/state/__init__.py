"""What there is in a project, and which changes of it are lawful."""
