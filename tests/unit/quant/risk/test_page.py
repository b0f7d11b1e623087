"""The limits in docs/risk.md have the defaults of the code."""

from pathlib import Path

from contracts.account import AccountLimits

LIMITS = AccountLimits()


def test_the_page_has_every_limit_with_its_default_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs/risk.md").read_text()
    table = page.partition("| limit | default |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    stated = {cells[0].strip("| `"): cells[1] for cells in rows}
    assert stated == {
        name: str(value).lower() if isinstance(value, bool) else f"{value:g}"
        for name, value in LIMITS
    }
