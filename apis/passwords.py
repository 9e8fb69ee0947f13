"""Makes passwords that every cloud accepts."""

from __future__ import annotations

import string
from itertools import cycle, islice
from typing import Final

from runtime import randomness

LENGTH: Final = 32
_CLASSES: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


def new_password() -> str:
    """Return a password of 32 letters and digits with lower case, upper case and digits in it: 144 bits.

    Letters and digits alternate, so that no name of letters is in it: Azure refuses a password that contains the
    administrator's name (`PasswordNotComplex`).
    """
    while True:
        alphabets = islice(cycle((string.ascii_letters, string.digits)), LENGTH)
        password = "".join(randomness.choice(alphabet) for alphabet in alphabets)
        if all(any(character in password for character in class_) for class_ in _CLASSES):
            return password
