"""Made passwords: all that clouds ask of one, and nothing that could be a part of a login's name."""

from __future__ import annotations

import re
import string

from apis.passwords import new_password


def test_made_passwords_have_all_classes_and_are_never_the_same() -> None:
    made = {new_password() for _ in range(500)}

    assert len(made) == 500
    for password in made:
        assert re.fullmatch(r"[A-Za-z0-9]{32}", password)
        for class_ in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            assert set(password) & set(class_)


def test_made_passwords_contain_no_part_of_a_name_of_letters() -> None:
    assert not [password for password in (new_password() for _ in range(5000)) if re.search(r"[A-Za-z]{2}", password)]
