"""Every setting is documented, and the documentation is what the program does."""

from pathlib import Path

import pytest

from deploy.reference.settings_table import BEGIN, END, rewritten, table
from libs.runtime.settings import Settings


def test_the_page_holds_the_table_of_today(root: Path) -> None:
    page = (root / "docs/configuration.md").read_text()
    assert page == rewritten(page), "run `make contracts` and commit"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_said_what_it_is(name: str) -> None:
    row = next(line for line in table().splitlines() if f"`DESKBUS_{name.upper()}`" in line)
    words = row.split("|")[3].split("(")[0]
    assert len(words.split()) >= 4, f"{name} has no docstring in libs/runtime/settings.py"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the two lines"):
        rewritten(f"{BEGIN} and no end")
    with pytest.raises(ValueError, match="needs the two lines"):
        rewritten(f"only an {END}")
