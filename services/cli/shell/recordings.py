"""A cycle's whole record, fetched part by part, and what a replay of it found."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from rich.text import Text

from contracts.cycle_query import Recording, RecordingQuery
from contracts.subjects.cycles import RECORDING
from libs.bus.client import Client
from libs.facts import amounts
from services.cli.shell.terminal import aside, put

if TYPE_CHECKING:
    from services.replay import ReplayReport

PARTS_MAX = 10_000
DIFFERENCES_SHOWN_MAX = 20
NOT_THE_SAME = (
    "the code, the settings or the record differ from the cycle's; after an upgrade see "
    "docs/upgrading.md, What is not"
)


async def fetch(client: Client, cycle_id: UUID) -> Sequence[Recording]:
    """Every operation of a cycle with its journal."""
    parts: list[Recording] = []
    for index in range(PARTS_MAX):
        part = await client.ask(RECORDING, RecordingQuery(cycle_id=cycle_id, index=index))
        if part.found:
            parts.append(part)
        if not part.more:
            break
    return merged(parts)


def merged(parts: Iterable[Recording]) -> Sequence[Recording]:
    """Parts of one operation as one: the first has command and result, all have calls."""
    whole: dict[UUID | None, Recording] = {}
    for part in parts:
        first = whole.get(part.op_id)
        journal = part.journal if first is None else (*first.journal, *part.journal)
        whole[part.op_id] = (first or part).model_copy(update={"journal": journal})
    return list(whole.values())


def tell(replayed: "ReplayReport") -> None:
    """Say whether the replay came out the same, and where it did not."""
    work = (
        f"{replayed.operations} operations run again on {replayed.calls} recorded calls, "
        f"{replayed.from_record} taken from the record; no model or data source was called"
    )
    if replayed.same:
        head = Text.assemble(("✓ the same decision", "bold green"), f"  {replayed.status}")
    else:
        count = len(replayed.differences)
        word = "difference" if count == 1 else "differences"
        head = Text.assemble((f"✗ {count} {word}", "bold red"), f"  {replayed.status}")
    put(head)
    put(f"  {work}", "dim")
    for difference in replayed.differences[:DIFFERENCES_SHOWN_MAX]:
        line = f"  {difference.step} {amounts.short(difference.op_id)}: {difference.what}"
        put(line, "red")
    for change in replayed.changed:
        put(f"  {change}; its answers are the recorded ones", "yellow")
    if not replayed.same:
        aside(NOT_THE_SAME)
