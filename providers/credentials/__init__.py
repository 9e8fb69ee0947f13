"""Passwords: where they are kept, how they are proven, published and rotated."""
