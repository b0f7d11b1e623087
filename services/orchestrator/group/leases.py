"""Claims, leases and budgets: who has an operation, what it recorded, what it may still spend."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from contracts.audit import EventType
from contracts.operation import (
    JOURNAL_BATCH_BYTES_MAX,
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    KnownAnswer,
    Record,
    RecordAnswer,
    Reserve,
)
from contracts.types import Usage, plainly
from libs.runtime import recorded_call
from libs.runtime.journal import batches
from libs.runtime.settings import Settings
from services.orchestrator.group.budgets import refused_call
from services.orchestrator.group.changes import (
    Loaded,
    NewEntry,
    NewEvent,
    NewOperation,
    NewUsage,
    step_event,
)
from services.orchestrator.group.rate_limits import EndpointPace
from services.orchestrator.group.rows import CallBudget, CycleRow, OperationRow
from services.orchestrator.machine.logic import SEQ_CALLS, SEQ_STARTED

CALL_EVENTS = {
    CallKind.MODEL: EventType.LLM_CALLED,
    CallKind.TOOL: EventType.TOOL_CALLED,
    CallKind.READ: EventType.DATA_READ,
}
SEQ_REQUESTS = 20_000
"""Numbers of `llm_requested` events begin above those of calls."""
CALLS_PER_EPOCH = 20_000
FreeWorkers = Callable[[str, str], int]
"""How many of a service's commands of a step would begin at once, in this process."""
NO_USAGE = Usage()
NOTHING = Reserve()


class Leases:
    """The claims and records of one group; entries and events go to the group's own lists.

    `used` gathers what calls used, to be added to the sums by sort; `answered` those whose answers
    are kept for whoever asks the same in a study.
    """

    def __init__(
        self,
        settings: Settings,
        loaded: Loaded,
        entries: list[NewEntry],
        events: list[NewEvent],
    ) -> None:
        self._settings = settings
        self._loaded = loaded
        self._entries = entries
        self._events = events
        self.used: list[NewUsage] = []
        self.answered: list[NewEntry] = []

    def _cycle_of(self, row: OperationRow) -> CycleRow:
        return self._loaded.cycles[row.cycle_id]

    def is_poison(self, row: OperationRow) -> bool:
        """Whether the operation was begun too often without an end."""
        return not self._is_held(row) and row.epoch >= self._settings.orchestrator.epochs_max

    def claim(self, row: OperationRow, claim: Claim) -> ClaimAnswer:
        """Grant the operation, or a further page of its journal, or say why not."""
        if row.ended:
            return ClaimAnswer(outcome="done")
        if claim.epoch is not None:
            return self._page(row, claim)
        if self._is_held(row) or self._is_out_of_turn(row):
            return ClaimAnswer(outcome="busy")
        return self._grant(row)

    def _is_held(self, row: OperationRow) -> bool:
        return row.status == "running" and row.lease_live

    def _is_out_of_turn(self, row: OperationRow) -> bool:
        """Whether this would be its last claim, and the sweep has not sent it for that.

        The sweep lets such suspects run one at a time; NATS, which delivers again what a killed
        process did not acknowledge, knows nothing of that.
        """
        return row.epoch >= self._settings.orchestrator.epochs_max - 1 > 0 and not row.lease_live

    def _grant(self, row: OperationRow) -> ClaimAnswer:
        if row.epoch == 0:
            self._tell_start(row)
        self.charge_reservation(row)
        row.epoch += 1
        _hold(row)
        return self._granted(row, 0)

    def claim_starts(
        self, starts: Sequence[NewOperation], free_workers: FreeWorkers
    ) -> list[NewOperation]:
        """The new operations, claimed where a service of this process begins them at once, so that
        it need not ask. A study's cells are left as they are: they may rest instead."""
        handed: Counter[tuple[str, str]] = Counter()

        def claimed(new: NewOperation) -> NewOperation:
            serves = new.start.step.serves
            command = serves.owner, new.start.step.name
            if not serves.claimed or new.cycle.of_study:
                return new
            if handed[command] >= free_workers(*command):
                return new
            handed[command] += 1
            self._tell_start(new.row())
            return replace(new, epoch=1)

        return list(map(claimed, starts))

    def _tell_start(self, row: OperationRow) -> None:
        cycle = self._cycle_of(row)
        started = step_event(cycle, row, row.op_id, SEQ_STARTED, EventType.OPERATION_STARTED)
        self._events.append(started)

    def _page(self, row: OperationRow, claim: Claim) -> ClaimAnswer:
        """The next part of a long journal, for the instance that has the work."""
        if claim.epoch != row.epoch:
            return ClaimAnswer(outcome="busy")
        _hold(row)
        return self._granted(row, claim.after)

    def _granted(self, row: OperationRow, after: int) -> ClaimAnswer:
        journal = [e for e in self._loaded.journals.get(row.op_id, ()) if e.index >= after]
        pages = batches(journal)
        return ClaimAnswer(
            outcome="granted",
            epoch=row.epoch,
            lease_s=self._settings.orchestrator.lease_s,
            journal=tuple(pages[0]) if pages else (),
            more=len(pages) > 1,
        )

    def poison(self, row: OperationRow) -> str:
        """Why an operation that is never finished is given up."""
        return (
            f"{row.step} was started {row.epoch} times and never ended: it crashes its process or "
            f"takes longer than its lease of {self._settings.orchestrator.lease_s:g} s; see the "
            f"log of {row.service}"
        )

    def record(self, row: OperationRow, record: Record) -> RecordAnswer:
        """Keep finished calls, settle, reserve, renew."""
        if row.ended:
            return RecordAnswer(outcome="cancelled", message=f"the operation is {row.status}")
        if row.epoch != record.epoch:
            return RecordAnswer(outcome="fenced", message=f"epoch {row.epoch} has the work")
        self.keep(row, record.entries)
        _hold(row)
        if record.progress is not None:
            row.progress = record.progress.model_dump_json().encode()
        return self._reserve(row, record.reserve)

    def keep(self, row: OperationRow, entries: Sequence[JournalEntry]) -> None:
        """Put finished calls on record, those that are not there yet, and settle what they cost."""
        cycle = self._cycle_of(row)
        fresh = [e for e in entries if (row.op_id, e.index) not in self._loaded.recorded]
        paid = [entry for entry in fresh if entry.kind is CallKind.MODEL]
        if paid:
            self._tell_pace(row, paid)
            self.settle(row, sum((entry.usage for entry in fresh), start=NO_USAGE))
        if cycle.of_study:
            self.answered += [NewEntry(row, entry) for entry in paid if _is_kept(entry)]
        for entry in fresh:
            self._loaded.recorded.add((row.op_id, entry.index))
            self._entries.append(NewEntry(row, entry))
            data = _call_data(entry)
            is_answer_check = entry.passed is not None
            seq = SEQ_CALLS + entry.index
            what = EventType.ANSWER_CHECKED if is_answer_check else CALL_EVENTS[entry.kind]
            self._events.append(step_event(cycle, row, row.op_id, seq, what, data))

    def _tell_pace(self, row: OperationRow, paid: Sequence[JournalEntry]) -> None:
        """Give back the pace that calls left unused, and keep all to the pause that their endpoint
        asked for.
        """
        pace = self._loaded.paces.get(paid[0].provider)
        if pace is None:
            return
        pace.give_back(max(0, row.reserved.tokens - sum(entry.usage.tokens for entry in paid)))
        for entry in paid:
            pace.close(_retry_after_s(entry))

    def charge_reservation(self, row: OperationRow) -> None:
        """Count all that is held back as spent: whoever had the operation may have paid for a call
        that nobody recorded."""
        held = row.reserved
        self.settle(row, Usage(unsorted_tokens=held.tokens, cost_usd=held.cost_usd))

    def settle(self, row: OperationRow, usage: Usage) -> None:
        """Turn what was held back for the calls in flight into what they used."""
        held, row.reserved = row.reserved, NOTHING
        if held == NOTHING and usage == NO_USAGE:
            return
        cycle = self._cycle_of(row)
        cycle.changed = True
        cycle.purse.release(held)
        cycle.purse.spend(usage.tokens, usage.cost_usd)
        day = self._day_of(cycle)
        if day is not None:
            # What an earlier day held back is not this day's to give back; the spending is.
            day.release(held if row.reserved_today else NOTHING)
            day.spend(usage.tokens, usage.cost_usd)
        row.spend(usage)
        if usage.tokens:
            self.used.append(NewUsage(row, usage))

    def _day_of(self, cycle: CycleRow) -> CallBudget | None:
        """The day's budget, which a study's cell neither needs nor takes from."""
        return None if cycle.of_study else self._loaded.day

    def _reserve(self, row: OperationRow, reserve: Reserve | None) -> RecordAnswer:
        lease_s = self._settings.orchestrator.lease_s
        if reserve is None or reserve == NOTHING:
            return RecordAnswer(outcome="ok", lease_s=lease_s)
        # One reservation at a time: a record that comes again, or after a failed call, replaces it.
        self.settle(row, NO_USAGE)
        cycle = self._cycle_of(row)
        on_record = self._on_record(reserve) if cycle.of_study else []
        known = _in_one_message(on_record)
        more = len(known) < len(on_record)
        if more or (reserve.addresses and len(known) == len({*reserve.addresses})):
            return RecordAnswer(outcome="ok", lease_s=lease_s, known=known, more=more)
        if cycle.offline:
            return _offline(reserve)
        day = self._day_of(cycle)
        refused = refused_call(
            reserve, row, cycle.purse, day, self._settings, of_study=cycle.of_study
        )
        if refused is not None:
            return refused
        pace = self._loaded.paces.get(reserve.provider) or EndpointPace(reserve.provider)
        wait_s = pace.wait_s(reserve)
        if wait_s > self._settings.model.wait_s_max:
            return _too_late(pace, wait_s, self._settings.model.wait_s_max)
        pace.take(reserve, wait_s)
        for purse in (cycle.purse, day):
            if purse is not None:
                purse.hold(reserve)
        cycle.changed = True
        row.reserved_today = day is not None
        row.reserved = Reserve(tokens=reserve.tokens, cost_usd=reserve.cost_usd)
        self._announce(row, reserve, wait_s)
        return RecordAnswer(outcome="ok", lease_s=lease_s, wait_s=wait_s, known=known)

    def _on_record(self, reserve: Reserve) -> list[tuple[str, bytes]]:
        """The answers to what is reserved for, each with its address, as far as a study has paid
        for them before."""
        answers = self._loaded.answers
        asked = dict.fromkeys(reserve.addresses)
        return [(address, answers[address]) for address in asked if address in answers]

    def _announce(self, row: OperationRow, reserve: Reserve, wait_s: float) -> None:
        """Put on record that a paid call begins; each epoch may begin it once."""
        if reserve.index is None:
            return
        cycle = self._cycle_of(row)
        seq = SEQ_REQUESTS + row.epoch * CALLS_PER_EPOCH + reserve.index
        data = {
            "name": reserve.name,
            "index": reserve.index,
            "epoch": row.epoch,
            "tokens_max": reserve.tokens,
            "cost_usd_max": None if reserve.cost_usd is None else plainly(reserve.cost_usd),
            "wait_s": round(wait_s, 3),
        }
        self._events.append(step_event(cycle, row, row.op_id, seq, EventType.LLM_REQUESTED, data))


def _in_one_message(on_record: Sequence[tuple[str, bytes]]) -> tuple[KnownAnswer, ...]:
    """The first of these answers, as many as one message holds; one always fits, as it came in a
    message with its call."""
    known: list[KnownAnswer] = []
    size_bytes = 0
    for address, reply in on_record:
        size_bytes += len(reply)
        if known and size_bytes > JOURNAL_BATCH_BYTES_MAX:
            break
        known.append(KnownAnswer(address=address, reply=orjson.loads(reply)))
    return tuple(known)


def _call_data(entry: JournalEntry) -> dict[str, Any]:
    """An event's data of a finished call; it is whole in the journal."""
    data: dict[str, Any] = {
        "name": entry.name,
        "index": entry.index,
        "duration_ms": entry.duration_ms,
        **recorded_call.outline(entry),
    }
    if entry.kind is CallKind.MODEL:
        request = entry.request if isinstance(entry.request, dict) else {}
        data["prompt_sha256"] = request.get("system_sha256", "")
        data["usage"] = entry.usage.model_dump(mode="json")
        data["fault"] = str(entry.fault.get("code", ""))
    if entry.passed is not None:
        data["passed"] = entry.passed
    return data


def _retry_after_s(entry: JournalEntry) -> float:
    """How long the endpoint asked to be left alone, instead of a reply."""
    wait_s = entry.fault.get("retry_after_s")
    return float(wait_s) if isinstance(wait_s, int | float) else 0.0


def _is_kept(entry: JournalEntry) -> bool:
    """Whether a call's answer was paid for and may be given again."""
    return entry.address is not None and not entry.reused and not entry.fault


def _offline(reserve: Reserve) -> RecordAnswer:
    return RecordAnswer(
        outcome="budget_exhausted",
        field="study.offline",
        message=(
            f"the answer of {reserve.name} is not on record, and the study is offline: run its "
            "file again without --offline; recorded answers are not paid again"
        ),
    )


def _too_late(pace: EndpointPace, wait_s: float, longest_s: float) -> RecordAnswer:
    return RecordAnswer(
        outcome="budget_exhausted",
        field=f"providers.{pace.provider}.rate",
        message=(
            f"{pace.provider} is available only in {wait_s:.0f} s, because of {pace.limits()}, "
            f"and the longest wait is {longest_s:g} s (DESKBUS_MODEL_WAIT_S_MAX): try again later, "
            f"request fewer cycles at once, or set [providers.{pace.provider}.rate] as your "
            "account has it"
        ),
    )


def _hold(row: OperationRow) -> None:
    """Renew the lease, for this group too: a claim that comes with a record that was just in time
    must not be granted, on a journal that does not have the record's calls yet."""
    row.status, row.lease_live, row.touched = "running", True, True
