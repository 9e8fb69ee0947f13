"""What is known and kept of one composed object."""
