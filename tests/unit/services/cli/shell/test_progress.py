"""What a person sees while a command works, and what is said where it is interrupted."""

import io
from datetime import UTC, datetime
from uuid import UUID

import pytest
from rich.console import Console

from contracts.audit import Event, EventType
from libs.report.events import described
from services.cli.shell import progress as progress_
from services.cli.shell.progress import CycleProgress
from tests.fakes.notable import notable

CYCLE = UUID("28f4da97-f2a1-5eb3-8f0b-40e747b81672")


class Clock:
    """Seconds as the test wants them."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_, "time", clock)
    return clock


def _console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=terminal)


def _event(kind: EventType, state: str | None = None) -> Event:
    return Event(
        event_id=UUID(int=1),
        sequence=1,
        type=kind,
        owner="orchestrator",
        cycle_id=CYCLE,
        pipeline="rules",
        state=state,
        at=datetime.now(UTC),
    )


def test_the_clock_shows_the_time_since_the_step_began_not_that_of_the_last_event(
    clock: Clock,
) -> None:
    with CycleProgress(_console(terminal=True)) as progress:
        progress.heard(_event(EventType.STATE_ENTERED, "training"))
        clock.now_s += 16
        assert progress.line() == "training · 16 s"
        progress.details("65% fold 4 of 5")
        clock.now_s += 60
        assert progress.line() == "training · 65% fold 4 of 5 · 1:16 min"
        progress.heard(_event(EventType.STATE_ENTERED, "awaiting_approval"))
        assert progress.line() == "awaiting approval · 0 s"


def test_a_computation_that_knows_its_share_says_the_time_that_is_left(clock: Clock) -> None:
    with CycleProgress(_console(terminal=True)) as progress:
        progress.heard(_event(EventType.STATE_ENTERED, "training"))
        progress.details("0% fold 1 of 5", 0.0)
        assert progress.line() == "training · 0% fold 1 of 5 · 0 s"
        clock.now_s += 20
        progress.details("40% fold 3 of 5", 0.4)
        assert progress.line() == "training · 40% fold 3 of 5 · about 30 s left · 20 s"


def test_counted_work_says_its_share_and_the_time_that_is_left(clock: Clock) -> None:
    with CycleProgress(_console(terminal=True)) as progress:
        progress.counts(0, 840, "decide of 2012-03-01")
        assert progress.line() == "decide of 2012-03-01 · 0 of 840 (0%) · 0 s"
        clock.now_s += 30
        progress.counts(210, 840, "decide of 2012-05-01")
        assert progress.line() == (
            "decide of 2012-05-01 · 210 of 840 (25%) · about 1:30 min left · 30 s"
        )


def test_where_no_line_can_change_counted_work_is_told_at_every_twentieth_part() -> None:
    console = _console()
    with CycleProgress(console) as progress:
        for number in range(840):
            progress.counts(number, 840, "decide")

    assert isinstance(console.file, io.StringIO)
    assert len(console.file.getvalue().splitlines()) == 19


def test_ctrl_c_says_what_continues_and_how_to_watch_and_stop_it() -> None:
    console = _console()
    progress = CycleProgress(console)
    progress.heard(_event(EventType.CYCLE_ACCEPTED))
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt

    assert isinstance(console.file, io.StringIO)
    words = console.file.getvalue()
    assert "cycle 28f4da97 is still running" in words
    assert "deskbus tail --cycle 28f4da97" in words
    assert "deskbus cycle cancel 28f4da97" in words


def test_where_nothing_was_begun_ctrl_c_has_nothing_to_say() -> None:
    console = _console()
    with pytest.raises(KeyboardInterrupt), CycleProgress(console):
        raise KeyboardInterrupt

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""


@pytest.mark.parametrize(
    "kind", [EventType.OPERATION_FAILED, EventType.ATTEMPT_ENDED, EventType.APPROVAL_REQUESTED]
)
def test_an_event_has_the_words_that_it_has_everywhere(kind: EventType) -> None:
    console = _console()
    event = notable(kind)
    with CycleProgress(console) as progress:
        progress.heard(event)

    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert described(event).text in written
    asks = kind is EventType.APPROVAL_REQUESTED
    assert ("deskbus approvals approve|reject" in written) is asks
