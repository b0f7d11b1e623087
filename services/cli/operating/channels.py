"""The lines of `deskbus doctor` on channels."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from contracts.notice import NotificationsQuery
from contracts.subjects.notices import NOTIFICATIONS
from libs.bus.client import Client
from libs.report.notify import channels
from libs.report.notify.channels import Line, Standing
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.cli.operating.checks import Check, Verdict, ok, problem
from services.cli.operating.notify import view_of

VERDICTS: Mapping[Standing, Verdict] = {
    Standing.OK: Verdict.OK,
    Standing.NEW: Verdict.OK,
    Standing.FAILING: Verdict.PROBLEM,
    Standing.UNUSABLE: Verdict.PROBLEM,
    Standing.REMOVED: Verdict.OFF,
}
NAME = "channel {}"
NOBODY = "the notifier does not answer, so nobody is told anything"


async def channels_of(client: Client, settings: Settings) -> Sequence[Check]:
    """Each channel of the running desk; nothing where none is set."""
    try:
        view = await view_of(client)
        states = (await client.ask(NOTIFICATIONS, NotificationsQuery(limit=1))).channels
    except DeskError as error:
        return [problem("channels", error.message, "see the log of console and notifier")]
    checks = []
    if view is None and settings.notify.channels:
        checks.append(problem("notifier", NOBODY, "see the log of the notifier; restart it"))
    shown = view or channels.of_settings(settings.notify, {}, working=False)
    lines = channels.lines(shown, states, datetime.now(UTC))
    return [*checks, *map(_check, lines)]


def _check(line: Line) -> Check:
    name = NAME.format(line.name)
    return Check(name=name, verdict=VERDICTS[line.standing], said=line.finding, todo=line.todo)


def channels_here(settings: Settings) -> Sequence[Check]:
    """Whether each channel could be used from here, where no desk runs that says it. Nobody is
    spoken to."""
    if not settings.notify.channels:
        return []
    # Hundreds of milliseconds, for those who have channels.
    from libs.channels.addresses import Addresses  # noqa: PLC0415
    from libs.channels.channel import ChannelUnusable  # noqa: PLC0415
    from libs.channels.opening import open_channel  # noqa: PLC0415

    addresses = Addresses(os.environ, settings.secrets_path)
    checks = []
    for name, channel in settings.notify.channels.items():
        try:
            open_channel(name, channel, addresses)
        except ChannelUnusable as error:
            checks.append(problem(NAME.format(name), error.message, channels.TODOS["not_set"]))
        else:
            checks.append(ok(NAME.format(name), "its address is set; not called here"))
    return checks
