"""Every setting is documented, and the documentation is what the program does."""

import pytest

from deploy.reference.settings_table import table
from libs.runtime.settings import all_settings


@pytest.mark.parametrize("name", [name for name, _ in all_settings()])
def test_every_setting_is_said_what_it_is(name: str) -> None:
    row = next(line for line in table().splitlines() if f"| `{name}` |" in line)
    words = row.split("|")[4].split("(")[0]
    assert len(words.split()) >= 3, f"{name} has no text below it where it is defined"
