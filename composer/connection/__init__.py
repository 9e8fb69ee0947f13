"""The connection Secret: its keys, and how it is written."""
