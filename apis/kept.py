"""What is kept of a database that is gone, in the words of a claim's last event and of a list. Pure."""

from __future__ import annotations


def called(kind: str, name: str, namespace: str, claim: str) -> str:
    """Return how people read what is kept: its kind and name in the cloud, and the claim that it was of."""
    return f"{kind} {name} of claim {namespace or '?'}/{claim or '?'}"


def lists_it(namespace: str, claim: str) -> str:
    """Return the command that lists what is kept of a claim, with what brings it back."""
    return f"fairlead backups -n {namespace} --claim {claim}"
