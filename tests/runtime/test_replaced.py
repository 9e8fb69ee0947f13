"""A copy of frozen data is another object with the fields of the first but for those that were changed."""

from dataclasses import dataclass

import pytest

from runtime.replaced import replace


@dataclass(frozen=True)
class Plain:
    """Frozen data without slots."""

    size: int = 1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Slotted:
    """Frozen data with slots."""

    size: int = 1
    name: str = ""


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_a_name_that_is_no_field_is_refused(kind: type[Plain]) -> None:
    with pytest.raises(TypeError):
        replace(kind(), colour="red")  # type: ignore[call-arg]  # no field, on purpose
