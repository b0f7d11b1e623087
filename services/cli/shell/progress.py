"""Progress on stderr: one changing line in a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from contracts.audit import Event, EventType
from libs.facts import amounts

SHARED = "shared"


class Progress:
    """Told of events; shows the states that pipelines enter and what fails."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._states: dict[str, str] = {}
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(Text("starting"), spinner="dots")
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

    def says(self, text: str) -> None:
        """A step of our own."""
        if self._status is not None:
            self._status.update(Text(text))
        else:
            self._line(text)

    def heard(self, event: Event) -> None:
        """An event of the cycle."""
        if event.type is EventType.STATE_ENTERED and event.state:
            self._states[event.pipeline or SHARED] = event.state
            self._show(event)
        elif event.type is EventType.APPROVAL_REQUESTED:
            short = amounts.short(event.cycle_id)
            self._line(
                f"{_lane(event.pipeline)}waits for approval: deskbus approvals list, "
                f"then deskbus approvals approve|reject {short}",
                style="bold yellow",
            )
        elif event.type is EventType.ATTEMPT_ENDED:
            self._line(f"{event.data.get('reason')}; trying the next design", style="yellow")
        elif event.type is EventType.OPERATION_FAILED:
            why = event.data.get("message") or event.data.get("code") or ""
            self._line(f"{event.state}/{event.data.get('step')} failed: {why}", style="red")

    def _show(self, event: Event) -> None:
        if self._status is None:
            self._line(f"{_lane(event.pipeline)}{event.state}")
            return
        states = {name: state for name, state in self._states.items() if name != SHARED}
        shown = states or self._states
        several = len(states) > 1
        text = "   ".join(f"{name}: {at}" if several else at for name, at in shown.items())
        self._status.update(Text(f"{text} · {self._elapsed()}"))

    def _line(self, text: str, style: str = "dim") -> None:
        line = Text(f"{self._elapsed():>8}  {amounts.cut(text, 300)}", style=style)
        self._console.print(line, soft_wrap=True)

    def _elapsed(self) -> str:
        return amounts.duration(time.monotonic() - self._started)


def _lane(pipeline: str | None) -> str:
    return "" if pipeline in {None, SHARED} else f"{pipeline}: "
