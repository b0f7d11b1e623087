"""The lines of `deskbus doctor` on channels."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from contracts.notice import NotificationsQuery
from contracts.subjects.notices import NOTIFICATIONS
from libs.bus.client import Client
from libs.report.notify import channels
from libs.report.notify.channels import ChannelHealth, ChannelStanding
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.cli.operating.checks import CheckVerdict, DoctorCheck, ok, problem
from services.cli.operating.notify import view_of

VERDICTS: Mapping[ChannelHealth, CheckVerdict] = {
    ChannelHealth.OK: CheckVerdict.OK,
    ChannelHealth.NEW: CheckVerdict.OK,
    ChannelHealth.FAILING: CheckVerdict.PROBLEM,
    ChannelHealth.UNUSABLE: CheckVerdict.PROBLEM,
    ChannelHealth.REMOVED: CheckVerdict.OFF,
}
NAME = "channel {}"
NO_NOTIFIER = "the notifier does not answer, so no messages are sent"


async def channels_of(client: Client, settings: Settings) -> Sequence[DoctorCheck]:
    """Each channel of the running desk; nothing where none is set."""
    try:
        shown = await view_of(client)
        states = (await client.ask(NOTIFICATIONS, NotificationsQuery(limit=1))).channels
    except DeskError as error:
        return [problem("channels", error.message, "see the logs of the console and the notifier")]
    checks = []
    if shown is None and settings.notify.channels:
        checks.append(problem("notifier", NO_NOTIFIER, "see the notifier's log; restart it"))
    shown = shown or channels.of_settings(settings.notify, {}, {})
    for line in channels.standings(shown, states, datetime.now(UTC)):
        checks += _checks(line)
    return checks


def _checks(line: ChannelStanding) -> Sequence[DoctorCheck]:
    name = NAME.format(line.name)
    check = DoctorCheck(
        name=name, verdict=VERDICTS[line.standing], said=line.finding, todo=line.todo
    )
    return [check, problem(name, line.lost, channels.LOST_TODO)] if line.lost else [check]


async def channels_here(settings: Settings) -> Sequence[DoctorCheck]:
    """Whether each channel could be used from here, where no desk runs that knows. Nothing is
    sent."""
    if not settings.notify.channels:
        return []
    # Loaded by those only who have channels.
    from libs.channels.addresses import Addresses  # noqa: PLC0415
    from libs.channels.channel import ChannelUnusable  # noqa: PLC0415
    from libs.channels.opening import open_channel  # noqa: PLC0415

    addresses = Addresses(os.environ, settings.secrets_path)
    checks = []
    for name, channel in settings.notify.channels.items():
        try:
            await open_channel(name, channel, addresses)
        except ChannelUnusable as error:
            checks.append(problem(NAME.format(name), error.message, channels.TODOS["not_set"]))
        else:
            checks.append(ok(NAME.format(name), "its address is set; not tested here"))
    return checks
