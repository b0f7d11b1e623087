"""The daily report of a job, from its cycle to whoever reads it: in Telegram and by mail, over the
servers of a whole desk."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from libs.channels import apprise_child
from libs.runtime.notify_settings import Notify
from libs.runtime.schedule_settings import Schedule
from tests.fakes.channel_server import ChannelServer, channel_server
from tests.fakes.internet import authority, names_lead_to
from tests.fakes.mail_server import PASSWORD, MailServer, mail_server
from tests.fakes.vendor_servers import Telegram
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in

JOBS = {
    "decide": {"kind": "decision", "when": "close+30m", "account": "timed"},
    "books": {"kind": "report", "when": ["close+45m"], "account": "timed"},
}
NOTIFY = {
    "base_url": "https://desk.example.org",
    "channels": {"phone": {}, "mail": {}},
    "rules": {"evening": {"events": ["report"], "accounts": ["timed"], "to": ["phone", "mail"]}},
}
MAIL = f"mailtos://desk:{PASSWORD}@example.org?smtp=smtp.example.org&to=you@example.org"


@dataclass(frozen=True)
class Evening:
    """A desk, and those whom it tells."""

    desk: Desk
    server: ChannelServer
    telegram: Telegram
    mail: MailServer


async def in_this_process(request: dict[str, Any], _: float) -> dict[str, Any]:
    """Apprise's call, in a thread."""
    return await asyncio.to_thread(apprise_child.answer, request)


@pytest.fixture(scope="module")
def evening(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[Evening]:
    folder, telegram = make_open_dir(), Telegram()
    ours = authority(folder / "tls")
    with (
        channel_server(certificate=ours.certificate) as server,
        mail_server(ours.certificate) as mail,
        pytest.MonkeyPatch.context() as patch,
    ):
        server.judge = telegram
        names_lead_to(patch, https=server.port, mail=mail.port)
        ours.is_trusted(patch)
        # In a thread: a child process would not see the names of this test.
        patch.setattr("libs.channels.apprise._call", in_this_process)
        patch.setenv("DESKBUS_NOTIFY_PHONE", f"tgram://{telegram.token}/12345678")
        patch.setenv("DESKBUS_NOTIFY_MAIL", MAIL)
        schedule = Schedule.model_validate({"clock": "replay", "jobs": JOBS})
        notify = Notify.model_validate(NOTIFY)
        with desk_in(folder, own_environment_in, schedule=schedule, notify=notify) as desk:
            yield Evening(desk, server, telegram, mail)


def test_the_report_of_a_session_is_sent_once_and_links_to_its_cycle(
    evening: Evening, tmp_path: Path
) -> None:
    deskbus = CommandLine(evening.desk.settings.data_dir, tmp_path)
    typed = "schedule replay --since 2012-07-05 --until 2012-07-05 --json"
    ran = deskbus(typed)
    reports = [run for run in ran.rows if run["job"] == "books"]
    assert [run["status"] for run in reports] == ["completed"]

    evening.server.wait(lambda _: len(evening.telegram.shown) >= 1)
    evening.mail.wait(1)
    days = ["Thu 2012-07-05"]
    for run, day, text, mail in zip(
        reports, days, evening.telegram.shown, evening.mail.taken, strict=True
    ):
        title, *lines = text.replace("\r\n", "\n").split("\n")
        assert title.removeprefix("Warning: ") == f"Report of timed for {day}"
        assert lines[-1] == f"https://desk.example.org/cycles/{run['cycle_id']}"
        assert mail["Subject"] == title
        assert mail.get_content().splitlines()[: len(lines)] == lines
        (report,) = deskbus(f"report {run['as_of']} --account timed --json").rows
        assert lines[0].startswith(f"worth {worth(report)} USD, ")


def worth(report: Json) -> str:
    """The equity of a report, as people read it."""
    return f"{float(report['worth']['equity']):,.2f}"


def test_what_was_told_is_on_record_as_sent(evening: Evening, tmp_path: Path) -> None:
    deskbus = CommandLine(evening.desk.settings.data_dir, tmp_path)
    rows = (deskbus("notify history --json")).rows
    assert {(row["channel"], row["status"], row["notice"]["kind"]) for row in rows} == {
        (channel, "sent", "report") for channel in ("phone", "mail")
    }
