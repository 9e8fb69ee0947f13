"""Starts the command line; without its libraries it says in a sentence how they are installed."""

import sys

_EXTRA = frozenset({"cyclopts", "rich"})


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:2] == ["__complete"]:
        from fairlead import completing

        completing.main()
        return
    try:
        from fairlead import cli
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.exit(
            f"fairlead: {error.name} is not installed: the command line is the extra `cli`; "
            "install fairlead[cli] (from a checkout: pip install '.[cli]'), or fairlead[cli,devcloud]"
        )
    cli.main()


if __name__ == "__main__":
    main()
