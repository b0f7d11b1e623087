"""Every setting is documented, and the documentation is what the program does."""

from pathlib import Path

import pytest

from deploy.reference.settings_table import BEGIN, END, rewritten, table
from libs.runtime.settings import all_settings


def test_the_page_holds_the_table_of_today(root: Path) -> None:
    page = (root / "docs/configuration.md").read_text()
    assert page == rewritten(page), "run `make contracts` and commit"


@pytest.mark.parametrize("name", [name for name, _ in all_settings()])
def test_every_setting_is_said_what_it_is(name: str) -> None:
    row = next(line for line in table().splitlines() if f"| `{name}` |" in line)
    words = row.split("|")[4].split("(")[0]
    assert len(words.split()) >= 3, f"{name} has no text below it where it is defined"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the two lines"):
        rewritten(f"{BEGIN} and no end")
    with pytest.raises(ValueError, match="needs the two lines"):
        rewritten(f"only an {END}")
