"""The one error that devcloud raises for a person to read."""


class DevcloudError(Exception):
    """Say which part of the local platform failed, what is wrong, and what to do, in one sentence."""
