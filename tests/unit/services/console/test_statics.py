"""What pages load: vendored files as their table says, nothing inline, nothing from elsewhere."""

import hashlib
import re
from pathlib import Path

import orjson
import pytest

from services.console.pages.show import TEMPLATES
from services.console.pages.statics import FOLDER, Statics

VENDOR = FOLDER / "vendor"
TABLE = orjson.loads((VENDOR / "vendored.json").read_bytes())
INLINE = re.compile(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", re.IGNORECASE)
ELSEWHERE = re.compile(r"""(?:src|href)=["'](?:https?:)?//""")
MARKUP = re.compile(
    r"\|\s*safe|innerHTML\s*=|outerHTML\s*=|insertAdjacentHTML|document\.write|eval\("
)
LINKS_OUT = {"https://www.tradingview.com/"}


def own(pattern: str) -> list[Path]:
    return [path for path in FOLDER.rglob(pattern) if VENDOR not in path.parents]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["file"]))
def test_a_vendored_file_is_what_its_publisher_released(row: dict[str, str]) -> None:
    body = (VENDOR / row["file"]).read_bytes()
    assert hashlib.sha256(body).hexdigest() == row["sha256"]
    assert (VENDOR / row["license_file"]).is_file()
    assert row["license"] in {"MIT", "Apache-2.0"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", row["version"])


def test_every_vendored_file_is_in_the_table() -> None:
    listed = {name for row in TABLE for name in (row["file"], row["license_file"])}
    assert {path.name for path in VENDOR.iterdir()} == listed | {"vendored.json"}


@pytest.mark.parametrize("template", TEMPLATES.glob("*.html"), ids=lambda path: path.name)
def test_a_template_has_nothing_inline_and_trusts_no_text(template: Path) -> None:
    text = template.read_text()
    for link in LINKS_OUT:
        text = text.replace(link, "/")
    assert INLINE.findall(text) == []
    assert ELSEWHERE.findall(text) == []
    assert MARKUP.findall(text) == []


@pytest.mark.parametrize("script", own("*.js"), ids=lambda path: path.name)
def test_a_script_never_makes_markup_of_text(script: Path) -> None:
    assert MARKUP.findall(script.read_text()) == []


def test_another_byte_makes_another_address(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1")
    one = Statics(tmp_path)
    (tmp_path / "a.js").write_text("2")
    two = Statics(tmp_path)
    assert one.url("a.js") != two.url("a.js") == Statics(tmp_path).url("a.js")
    with pytest.raises(LookupError, match=r"b\.js"):
        two.url("b.js")
