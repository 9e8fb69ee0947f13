"""Kinds of claims and of composed objects: what is known of them, and their informers."""
