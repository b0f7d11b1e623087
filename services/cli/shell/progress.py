"""Progress on stderr: one changing line in a terminal, plain lines elsewhere."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from contracts.audit import Event, EventType
from libs.facts import amounts
from services.cli.shell.terminal import TONE_STYLES

SHARED = "shared"
LINES_OF_PARTS = 20
"""Where no line can change, work that is counted is told at every twentieth part."""
ETA_FROM_S = 2.0
"""Before so much time has passed nobody knows how long the rest takes."""

SHOWN = frozenset(
    {EventType.APPROVAL_REQUESTED, EventType.ATTEMPT_ENDED, EventType.OPERATION_FAILED}
)
"""Events that have a line of their own besides the states."""

Interrupted = Callable[[str], str]
"""The sentence for who presses Ctrl-C while the cycle of this short id runs (empty: none does)."""


def cycle_continues(cycle: str) -> str:
    """A running desk goes on with a cycle, whoever waits for it."""
    if not cycle:
        return ""
    return (
        f"cycle {cycle} is still running\n"
        f"  watch it: deskbus tail --cycle {cycle}    stop it: deskbus cycle cancel {cycle}"
    )


class CycleProgress:
    """Told of events; shows the states that pipelines enter, how long they take, and what fails.

    Left by Ctrl-C it says what goes on all the same. Without `live` no line changes: for commands
    that print their results meanwhile.
    """

    def __init__(
        self, console: Console, interrupted: Interrupted = cycle_continues, *, live: bool = True
    ) -> None:
        self._console = console
        self._live = live and console.is_terminal
        self._interrupted = interrupted
        self._started = time.monotonic()
        self._step_started = self._started
        self._states: dict[str, str] = {}
        self._text = "starting"
        self._detail = ""
        self._cycle = ""
        self._parts_printed = 0
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._status = self._console.status(_Ticking(self.line), spinner="dots")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            words = self._interrupted(self._cycle)
            if words:
                self._console.print(Text(words, style="yellow"), soft_wrap=True)

    def line(self) -> str:
        """The changing line as it is now: what is done, how far it is, and since when."""
        detail = f" · {self._detail}" if self._detail else ""
        return f"{self._text}{detail} · {_clock(time.monotonic() - self._step_started)}"

    def says(self, text: str) -> None:
        """A step of our own begins."""
        self._begins(text)
        if self._status is None:
            self._line(text)

    def details(self, text: str, share: float = 0.0) -> None:
        """How far the present step is; its clock goes on. From the `share` of it that is done, 0 to
        1, comes the time left."""
        self._detail = text + _left(time.monotonic() - self._step_started, share)

    def counts(self, done: int, total: int, text: str) -> None:
        """So many of all parts are done, and the next one begins: the share and the time left."""
        passed_s = time.monotonic() - self._started
        self._text, self._step_started = text, self._started
        share = done / total if total else 1.0
        self._detail = f"{done:,} of {total:,} ({share:.0%}){_left(passed_s, share)}"
        if self._status is None and int(share * LINES_OF_PARTS) > self._parts_printed:
            self._parts_printed = int(share * LINES_OF_PARTS)
            self._line(f"{self._detail} · {text}")

    def heard(self, event: Event) -> None:
        """An event of the cycle."""
        self._cycle = "" if event.type is EventType.CYCLE_ENDED else amounts.short(event.cycle_id)
        if event.type is EventType.STATE_ENTERED and event.state:
            self._states[event.pipeline or SHARED] = event.state
            self._show(event)
        elif event.type in SHOWN:
            # Of these there are few, and their words load the contracts of all decisions.
            from libs.report import events  # noqa: PLC0415

            words = events.described(event)
            self._line(words.text, style=TONE_STYLES[words.tone] or "dim")
            if event.type is EventType.APPROVAL_REQUESTED:
                short = amounts.short(event.cycle_id)
                todo = f"deskbus approvals list, then deskbus approvals approve|reject {short}"
                self._line(todo, style="bold yellow")

    def _show(self, event: Event) -> None:
        if self._status is None:
            self._line(f"{_lane(event.pipeline)}{event.state}")
            return
        states = {name: state for name, state in self._states.items() if name != SHARED}
        shown = states or self._states
        several = len(states) > 1
        self._begins(
            "   ".join(
                f"{name}: {in_words(at)}" if several else in_words(at) for name, at in shown.items()
            )
        )

    def _begins(self, text: str) -> None:
        self._text, self._detail = text, ""
        self._step_started = time.monotonic()

    def _line(self, text: str, style: str = "dim") -> None:
        passed = amounts.duration(time.monotonic() - self._started)
        line = Text(f"{passed:>8}  {amounts.cut(text, 300)}", style=style)
        self._console.print(line, soft_wrap=True)


class _Ticking:
    """A line that is asked for anew whenever the terminal is drawn."""

    def __init__(self, line: Callable[[], str]) -> None:
        self._line = line

    def __rich__(self) -> Text:
        return Text(self._line())


def in_words(state: str) -> str:
    """A state's name as people read it."""
    return state.replace("_", " ")


def _clock(seconds: float) -> str:
    """Whole seconds: a clock that people watch."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02} min"


def _left(passed_s: float, share: float) -> str:
    """` · about 1:30 min left`; empty while nobody can know it."""
    if share <= 0 or passed_s < ETA_FROM_S:
        return ""
    return f" · about {_clock(passed_s * (1 - share) / share)} left"


def _lane(pipeline: str | None) -> str:
    return "" if pipeline in {None, SHARED} else f"{pipeline}: "
