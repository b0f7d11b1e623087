"""Files of one's own that cannot be used: what `deskbus up`, `check` and `doctor` say of them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.cycle_query import CyclesQuery
from contracts.message import PAGE_MAX
from contracts.subjects.cycles import CYCLES
from libs.bus.client import open_client
from libs.facts import amounts
from libs.market.choice import SourceName, source_of
from libs.market.errors import MarketError
from libs.market.exit_terms import BadExitTerms, terms_in
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.cli.operating.checks import DoctorCheck, ok, problem
from services.cli.shell.problem import CliProblem
from services.cli.shell.running import find_desk

if TYPE_CHECKING:
    from libs.market.replay.kept import Correction

LOOK_S_MAX = 2.0
"""A large folder is looked at for so long; `deskbus check` reads all of it."""
CORRECTED_SHOWN = timedelta(days=14)
"""How long a change of past prices is shown."""
NAMED_MAX = 3
"""Files that are named in one line."""
CYCLES_NAMED_MAX = 5
"""Cycles that saw earlier prices, of one change."""
ALL = "`deskbus check` shows all files"
NOT_ALL = f"not all market files were checked within {LOOK_S_MAX:g} s"


def require_exit_rules(settings: Settings) -> None:
    """Raise CliProblem where the file of exit rules cannot be used."""
    try:
        terms_in(settings.exit_rules_file)
    except BadExitTerms as error:
        raise CliProblem(error.message, "correct the file, then try again") from error


async def market_note(settings: Settings) -> Sequence[str]:
    """The first files that cannot be used or are ignored, and the command that shows all; nothing
    where there are none, or the files are not one's own."""
    refused, ignored, is_all = await _refused(settings)
    notes = []
    if not is_all:
        notes.append(f"{NOT_ALL}; {ALL}")
    if refused:
        notes.append(f"market files that cannot be used: {_few(refused)}; {ALL}")
    if ignored:
        notes.append(f"ignored market files: {_few(ignored)}")
    unused, corrected = await _changes(settings)
    if unused:
        notes.append(f"changed market files, used in their earlier version: {_few(unused)}")
    if corrected:
        notes.append(f"past prices changed: {_few(corrected)}")
    return tuple(notes)


async def market_files(settings: Settings) -> Sequence[DoctorCheck]:
    """Those that cannot be used, and past prices that were changed, as checks."""
    refused, _, is_all = await _refused(settings)
    _, corrected = await _changes(settings)
    return (
        *((problem("market files", _few(refused), ALL),) if refused else ()),
        *((ok("market files", f"{NOT_ALL}; {ALL}"),) if not is_all else ()),
        *((ok("past prices", f"changed: {_few(corrected)}"),) if corrected else ()),
    )


async def _changes(settings: Settings) -> tuple[Sequence[str], Sequence[str]]:
    """Files that a running desk uses as they were before they went bad; and past prices that
    changed lately, newest first, each with the cycles that saw the earlier ones."""
    if settings.market.replay_dir is None or source_of(settings) is not SourceName.REPLAY:
        return (), ()
    from libs.market.replay.kept import KeptVersions  # noqa: PLC0415 - few bring files
    from libs.market.sources import VERSIONS_DIR  # noqa: PLC0415

    newest = KeptVersions(settings.data_dir / VERSIONS_DIR).newest()
    if newest is None or newest.directory != str(settings.market.replay_dir.resolve()):
        return (), ()
    since = datetime.now(UTC) - CORRECTED_SHOWN
    corrected = [
        f"{one.file}, {one.bars} bars from {one.first} on: close {one.was} is now "
        f"{'gone' if one.now is None else one.now}; {await _seen_by(settings, one)}"
        for one in [one for one in reversed(newest.corrections) if one.seen_at >= since][:NAMED_MAX]
    ]
    return [str(finding) for finding in newest.refused.values()], corrected


async def _seen_by(settings: Settings, one: "Correction") -> str:
    """The cycles that read the earlier bars: those of a session from the first of them on that were
    accepted before the change was seen. Without a desk to ask: where they are."""
    try:
        desk = find_desk(settings)
        async with open_client(desk.nats_url, desk.secrets_dir) as client:
            page = await client.ask(CYCLES, CyclesQuery(since=one.first, limit=PAGE_MAX))
    except (DeskError, CliProblem):
        return f"cycles up to data version {one.before} saw the earlier ones (desk.cycles)"
    seen = [
        f"{amounts.short(cycle.cycle_id)} ({cycle.as_of})"
        for cycle in page.cycles
        if cycle.accepted_at is not None and cycle.accepted_at < one.seen_at
    ]
    if not seen:
        return "no cycle saw the earlier ones"
    more = len(seen) - CYCLES_NAMED_MAX
    rest = f" and {more}{' or more' if page.before else ''} others" if more > 0 else ""
    return f"seen by cycles {', '.join(seen[:CYCLES_NAMED_MAX])}{rest}"


def _few(words: Sequence[str]) -> str:
    more = f" (and {len(words) - NAMED_MAX} more)" if len(words) > NAMED_MAX else ""
    return " | ".join(words[:NAMED_MAX]) + more


async def _refused(settings: Settings) -> tuple[Sequence[str], Sequence[str], bool]:
    """Why files cannot be used, why others are ignored, and whether all were looked at in time."""
    if settings.market.replay_dir is None or source_of(settings) is not SourceName.REPLAY:
        return (), (), True
    from libs.market.replay.checked import checked_files  # noqa: PLC0415 - few bring files
    from libs.market.replay.store import ReplayStore  # noqa: PLC0415

    refused: list[str] = []
    ignored: Sequence[str] = ()
    try:
        store = ReplayStore(settings.market.replay_dir)
        # Their names are enough, so however slow the machine is, they are all told.
        ignored = [f"{stray.file}: {stray.what}; {stray.remedy}" for stray in store.strays]
        async with asyncio.timeout(LOOK_S_MAX):
            async for file in checked_files(store):
                if file.refused:
                    refused.append(file.refused)  # noqa: PERF401 - kept where time runs out
    except MarketError as error:
        refused.append(error.message)
    except TimeoutError:
        return refused, ignored, False
    return refused, ignored, True
