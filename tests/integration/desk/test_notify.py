"""`deskbus notify` and what `doctor` says of channels, on a desk with five of them."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from libs.runtime.ports import choose_port
from tests.fakes.channel_server import Answer, ChannelServer, channel_server
from tests.integration.desk.command_line import CommandLine, Said, ended, up

LATER = f"{datetime.now(UTC) + timedelta(hours=12):%H:%M}"
"""No digest goes out while the tests run."""
SETTINGS = {
    "channels": {
        "phone": {},
        "ops": {"service": "webhook"},
        "pager": {},
        "mail": {},
        "post": {},
    },
    "rules": {
        "trades": {"events": ["decision"], "accounts": ["main"], "to": ["phone", "pager", "mail"]},
        "evening": {"events": ["fill"], "to": ["ops"], "digest": LATER, "quiet": "22:00-07:00"},
    },
}
TOKEN = "a-secret-in-the-address"
KEY = "the-key-of-the-webhook-itself"
PASSWORD = "the-password-of-the-mailbox"
WAIT_S = 60.0
WIDTH = 80


@dataclass(frozen=True)
class Evening:
    """What was said while a desk told people of a decision, and after it was stopped."""

    said: dict[str, Said]
    phone: list[str]
    quiet: list[str]
    log: str
    metrics: str


def settings_of(
    phone: ChannelServer, pager: ChannelServer, metrics_port: int
) -> tuple[tuple[str, str], ...]:
    def as_json(url: str) -> str:
        return url.replace("http://", "json://")

    return (
        ("DESKBUS_NOTIFY", json.dumps(SETTINGS)),
        ("DESKBUS_NOTIFY_PHONE", f"{as_json(phone.url)}/{TOKEN}"),
        ("DESKBUS_NOTIFY_PAGER", f"{as_json(pager.url)}/{TOKEN}"),
        ("DESKBUS_NOTIFY_OPS", f"{phone.url}/{TOKEN}"),
        ("DESKBUS_NOTIFY_OPS_KEY", KEY),
        (
            "DESKBUS_NOTIFY_POST",
            f"mailtos://desk:{PASSWORD}@127.0.0.1:9?from=desk@example.com&to=me@example.com",
        ),
        ("DESKBUS_METRICS_PORT", str(metrics_port)),
        ("COLUMNS", str(WIDTH)),
    )


def until(deskbus: CommandLine, typed: str, is_so: Callable[[Said], bool]) -> Said:
    """What the command says once that is so."""
    deadline = time.monotonic() + WAIT_S
    while not is_so(said := deskbus(typed)):
        assert time.monotonic() < deadline, said
    return said


@pytest.fixture(scope="module")
def evening(make_open_dir: Callable[[], Path]) -> Iterator[Evening]:
    folder = make_open_dir()
    with channel_server() as phone, channel_server() as pager:
        pager.judge = lambda _: Answer(401)
        metrics_port = choose_port(None, set())
        deskbus = CommandLine(folder / "data", folder, settings_of(phone, pager, metrics_port))
        said = {"doctor before": deskbus("doctor --json")}
        with up(deskbus) as (process, _):
            requested = deskbus("cycle request --as-of 2012-06-29 --wait --json")
            assert requested.code == 0, requested.err
            phone.wait(lambda server: bool(server.taken))
            pager.wait(lambda server: bool(server.heard))
            until(deskbus, "notify history --status sent --json", lambda done: bool(done.out))
            until(deskbus, "notify list", lambda done: "failing" in done.out)
            for typed in (
                "notify list",
                "notify list --json",
                "notify history",
                "notify history --json",
                "notify history --channel fone",
                "notify history --channel Phone!",
                "notify history --channel phone --status due",
                "doctor --json",
                "notify test phone",
                "notify test pager",
                "notify test ops --json",
                "notify test post",
                "notify test fone",
                "notify test",
                "config",
            ):
                said[typed] = deskbus(typed)
            metrics = httpx2.get(f"http://127.0.0.1:{metrics_port}/metrics", timeout=30).text
            log = ended(process, signal.SIGINT).err
        said["history after"] = deskbus("notify history --json")
        said["list after"] = deskbus("notify list")
        bodies = [heard.body.decode() for heard in phone.taken]
        yield Evening(said, bodies, [TOKEN, KEY, PASSWORD, phone.url, pager.url], log, metrics)


def test_history_tells_what_was_sent_and_what_waits(evening: Evening) -> None:
    rows = evening.said["notify history --json"].rows
    decision = {row["channel"]: row for row in rows if row["notice"]["kind"] == "decision"}
    assert decision.keys() == {"phone", "pager", "mail"}
    assert decision["phone"]["status"] == "sent"
    assert (decision["pager"]["status"], decision["pager"]["code"]) == ("due", "http_401")
    assert decision["pager"]["tries"] >= 1
    assert decision["phone"]["notice"]["title"] == "Decision of main for Fri 2012-06-29"
    fills = [row for row in rows if row["notice"]["kind"] == "fill"]
    assert {(row["channel"], row["status"], row["tries"]) for row in fills} == {("ops", "due", 0)}

    table = evening.said["notify history"].out
    assert "Decision of main" in table
    assert "HTTP" in table
    assert "waiting: until" in table
    filtered = evening.said["notify history --channel phone --status due"]
    assert (filtered.code, "Decision of main" in filtered.out) == (0, False)


def test_what_was_sent_is_what_is_on_record(evening: Evening) -> None:
    assert any("Decision of main for Fri 2012-06-29" in body for body in evening.phone)


def test_the_list_shows_channels_with_what_to_do_and_rules(evening: Evening) -> None:
    text = " ".join(evening.said["notify list"].out.split())
    assert "phone: last sent" in text
    assert "failed (HTTP 401)" in text
    assert "DESKBUS_NOTIFY_MAIL" in text
    assert "trades decision" in text
    assert f"daily at {LATER}, but for 22:00-07:00 UTC" in text

    (row,) = evening.said["notify list --json"].rows
    channels = {each["channel"]["name"]: each for each in row["channels"]}
    assert list(channels) == ["phone", "ops", "pager", "mail", "post"]
    assert channels["phone"]["state"]["sent"] == 1
    assert channels["pager"]["state"]["failures"] >= 1
    assert [rule["name"] for rule in row["rules"]] == ["trades", "evening"]
    assert row["answers"]


def test_no_line_of_a_table_is_wider_than_the_terminal(evening: Evening) -> None:
    for typed in ("notify list", "notify history", "list after"):
        assert max(map(len, evening.said[typed].out.splitlines())) <= WIDTH, typed


def test_a_test_message_arrives_and_one_that_does_not_says_why(evening: Evening) -> None:
    phone, pager = evening.said["notify test phone"], evening.said["notify test pager"]
    assert (phone.code, phone.out) == (0, "✓ phone took the message\n")
    assert any("A test of channel phone" in body for body in evening.phone)
    assert pager.code == 1
    assert "✗ pager did not accept it (http_401)" in pager.out
    assert "→ " in pager.out
    (ops,) = evening.said["notify test ops --json"].rows
    assert ops["sent"]

    everyone = evening.said["notify test"]
    assert everyone.code == 1
    assert everyone.out.count("✓") == 2
    assert everyone.out.count("✗") == 3


def test_a_mistyped_channel_is_told_with_the_nearest_one(evening: Evening) -> None:
    test, history = evening.said["notify test fone"], evening.said["notify history --channel fone"]
    assert test.code == 3
    assert "did you mean phone?" in test.err
    assert history.code == 2
    assert "did you mean phone?" in history.err
    odd = evening.said["notify history --channel Phone!"]
    assert odd.code == 2
    assert "channel: " in odd.err


def test_doctor_says_of_each_channel_how_it_fares(evening: Evening) -> None:
    said = evening.said["doctor --json"]
    checks = {row["name"]: row for row in said.rows}
    assert said.code == 1
    assert checks["channel phone"]["verdict"] == "ok"
    assert checks["channel phone"]["said"].startswith("last sent")
    assert checks["channel pager"]["verdict"] == "problem"
    assert "failed (HTTP 401)" in checks["channel pager"]["said"]
    assert checks["channel pager"]["said"].startswith("failing for ")
    assert "refuses the address" in checks["channel pager"]["todo"]
    assert checks["channel mail"]["verdict"] == "problem"
    assert "docs/notifications.md" in checks["channel mail"]["todo"]


def test_before_a_desk_runs_doctor_says_which_channels_are_set(evening: Evening) -> None:
    checks = {row["name"]: row for row in evening.said["doctor before"].rows}
    assert checks["channel phone"]["verdict"] == checks["channel ops"]["verdict"] == "ok"
    assert "DESKBUS_NOTIFY_MAIL" in checks["channel mail"]["said"]


def test_without_a_running_desk_the_record_is_read(evening: Evening) -> None:
    history, listed = evening.said["history after"], evening.said["list after"]
    assert history.code == listed.code == 0
    assert {row["channel"] for row in history.rows} == {"phone", "pager", "mail", "ops"}
    assert "reading its record" in history.err
    assert "phone: last sent" in listed.out
    assert "are from the settings here" in listed.err


def test_no_address_and_no_key_is_ever_shown(evening: Evening) -> None:
    assert "deskbus_notices" in evening.metrics
    assert "✗ post did not accept it" in evening.said["notify test post"].out
    shown = [evening.log, evening.metrics, *(said.out + said.err for said in evening.said.values())]
    for secret in evening.quiet:
        assert not any(secret in text for text in shown), secret


def test_a_rule_for_an_event_that_does_not_exist_is_told_with_the_nearest_name(
    tmp_path: Path,
) -> None:
    wrong = {"channels": {"phone": {}}, "rules": {"r": {"events": ["fil"], "to": ["phone"]}}}
    said = CommandLine(tmp_path / "data", tmp_path)("doctor", DESKBUS_NOTIFY=json.dumps(wrong))
    assert said.code == 2
    assert "notify.rules.r.events" in said.err
    assert "did you mean fill?" in said.err
