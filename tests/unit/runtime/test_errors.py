"""Words of errors: names of what there is, never more of them than a person reads."""

import pytest

from libs.runtime.errors import NAMES_MAX, few


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "none yet"),
        (("main",), "main"),
        (("main", "growth"), "main, growth"),
        (["x"] * (NAMES_MAX + 3), ", ".join(["x"] * NAMES_MAX) + " and 3 more"),
    ],
)
def test_the_first_names_are_told_and_how_many_more_there_are(
    names: tuple[str, ...], told: str
) -> None:
    assert few(names, "none yet") == told
