"""docs/notifications.md: its examples work, and its table has every kind with what is so."""

import asyncio
import re
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from contracts.notice import Severity
from libs.channels import apprise_child
from libs.channels.webhook import SIGNATURE_VERSION, signature
from libs.runtime.notify_settings import DEFAULT_EVENTS, KINDS, ChannelSettings, Notify

PAGE = (Path(__file__).parents[3] / "docs/notifications.md").read_text()
KEY = "k" * 32
BODY = '{"version": 1, "notices": [{"title": "Bücher"}]}'.encode()

ADDRESSES = sorted(set(re.findall(r"ntfys?://[^`\s]+\w", PAGE)))

IsGenuine = Callable[[bytes, str, str], bool]


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def is_genuine(monkeypatch: pytest.MonkeyPatch) -> IsGenuine:
    """The function that the page gives to whoever receives a webhook."""
    monkeypatch.setenv("DESKBUS_NOTIFY_OPS_KEY", KEY)
    (code,) = examples("python")
    names: dict[str, IsGenuine] = {}
    exec(code, names)
    return names["is_genuine"]


def signed(body: bytes = BODY, key: str = KEY, age_s: int = 0) -> tuple[bytes, str, str]:
    stamp = str(int(time.time()) - age_s)
    return body, stamp, f"{SIGNATURE_VERSION}={signature(SecretStr(key), stamp, body)}"


def test_what_the_desk_signs_is_genuine_for_who_checks_it_as_the_page_says(
    is_genuine: IsGenuine,
) -> None:
    assert is_genuine(*signed())
    assert is_genuine(*signed(age_s=60))


def test_anything_else_is_not(is_genuine: IsGenuine) -> None:
    body, stamp, good = signed()
    assert not is_genuine(body + b" ", stamp, good)
    assert not is_genuine(body, str(int(stamp) + 1), good)
    assert not is_genuine(*signed(key="another" * 5))
    assert not is_genuine(*signed(age_s=3_600)), "one that was sent before is sent again"
    for nonsense in ("", "v1=", "v2=" + good[3:], "v1=ü"):
        assert not is_genuine(body, stamp, nonsense), nonsense
    assert not is_genuine(body, "soon", good)


def test_the_settings_of_the_page_are_taken_together() -> None:
    # The phone stands on the page twice: alone, and beside the mail.
    parts = [tomllib.loads(each)["notify"] for each in examples("toml")]
    merged: dict[str, dict[str, object]] = {"channels": {}, "rules": {}}
    for part in parts:
        merged["channels"] |= part.pop("channels", {})
        merged["rules"] |= part.pop("rules", {})
        merged |= part
    notify = Notify.model_validate(merged)
    assert list(notify.channels) == ["phone", "mail", "ops"]
    assert list(notify.rules) == ["trades", "trouble", "evening"]
    assert notify.base_url == "https://desk.example.org"


def rows(head: str) -> Mapping[str, list[str]]:
    """A table of the page by its first column, which stands in code."""
    lines = PAGE.partition(f"| {head} |")[2].splitlines()[2:]
    table = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    return {row[0].strip("`"): row[1:] for row in table}


def test_the_table_has_every_kind_and_says_which_are_told_without_rules() -> None:
    table = rows("kind")
    assert set(table) == set(KINDS)
    assert {kind for kind, row in table.items() if row[-1] == "yes"} == set(DEFAULT_EVENTS)
    for kind, row in table.items():
        assert re.findall(r"\w+", row[1])[0] in list(Severity), kind


def test_the_table_of_a_channels_fields_has_all_of_them_with_their_defaults() -> None:
    table = rows("field of a channel")
    assert set(table) == set(ChannelSettings.model_fields)
    for name, field in ChannelSettings.model_fields.items():
        shown = table[name][0].strip("`")
        is_number = isinstance(field.default, float)
        assert float(shown) == field.default if is_number else shown == str(field.default).lower()


SHAPES: Mapping[str, str] = {
    "BOT-TOKEN": f"123456789:{'a' * 35}",
    "CHAT-ID": "12345678",
    "TOKEN-A": "T1JJ3T3L2",
    "TOKEN-B": "A1BRTD4JD",
    "TOKEN-C": "T" * 24,
    "WEBHOOK-ID": "417429632418316298",
    "WEBHOOK-TOKEN": "a-token",
}
"""What a service gives in the place of a word of the page, where Apprise looks at its shape."""


@pytest.mark.parametrize(
    "address", [row[0].strip("`") for row in rows("service").values()] + ADDRESSES
)
async def test_apprise_knows_every_address_that_the_page_names(address: str) -> None:
    for word, shape in SHAPES.items():
        address = address.replace(word, shape)
    answer = await asyncio.to_thread(apprise_child.answer, {"url": address})
    assert "limits" in answer, answer
