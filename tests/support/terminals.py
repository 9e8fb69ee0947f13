"""What a program shows on a terminal."""

import os


def read_terminal(terminal: int) -> bytes:
    """Return what is written to a pseudo terminal until its last writer ends; close it."""
    content = b""
    try:
        while part := os.read(terminal, 65_536):
            content += part
    except OSError:
        # The last writer is gone (tty_ioctl(4): reads fail with EIO).
        pass
    finally:
        os.close(terminal)
    return content
