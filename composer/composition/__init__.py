"""Compositions and their revisions: checked, stored, rolled out wave by wave."""
