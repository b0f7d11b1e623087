"""Every Python process that finds this on its path goes by another time: the wall clock's, and as
many seconds more as the file MOVED_CLOCK says. The clocks that count durations go as they do.

Python imports a module of this name at its start. `datetime.now` is moved, in all modules. Postgres
has its own time, so the orchestrator's schedule is given this one. QUICK_BROKER says how long
execution waits for the broker's answer; its loop then waits fractions of a second for what else it
waits seconds.
"""

import datetime as dates
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = os.environ.get("MOVED_CLOCK")
real = dates.datetime


def moved_s() -> float:
    """By how much the time is another one now."""
    return float(Path(FILE or "").read_text())


class _AsReal(type):
    """What is a datetime is one of the moved class too: nothing is ever made of that one."""

    def __instancecheck__(cls, it: object) -> bool:
        return isinstance(it, real)

    def __subclasscheck__(cls, it: type) -> bool:
        return issubclass(it, real)


class Moved(real, metaclass=_AsReal):
    """`datetime` with another present."""

    fromtimestamp = real.fromtimestamp
    fromisoformat = real.fromisoformat
    fromordinal = real.fromordinal
    fromisocalendar = real.fromisocalendar
    strptime = real.strptime
    combine = real.combine

    def __new__(cls, *given: Any, **named: Any) -> Any:
        return real(*given, **named)

    @classmethod
    def now(cls, tz: dates.tzinfo | None = None) -> Any:
        """The moved present."""
        return real.fromtimestamp(time.time() + moved_s(), tz)


def _schedule(module: ModuleType) -> None:
    module.DeskClock.now = lambda _: Moved.now(dates.UTC)  # type: ignore[attr-defined]


def _execution(module: Any) -> None:
    if not (answer := os.environ.get("QUICK_BROKER")):
        return
    answer_s = float(answer)
    module.AlpacaPaper = partial(module.AlpacaPaper, answer_s_max=answer_s)
    module.Looker = partial(module.Looker, settle_s=0.1)
    # The lease is longer than the two answers of a post may take.
    module.OrderSender = partial(
        module.OrderSender, lease_s=0.5 + 2 * answer_s, tick_s=0.2, idle_s=0.5, defect_s=1.0
    )


CHANGES: dict[str, Callable[[Any], None]] = {
    "services.orchestrator.schedulers.desk_clock": _schedule,
    "services.execution.app": _execution,
}


class _Changing(MetaPathFinder):
    """Changes a module right after it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, and its change behind it."""
        change = CHANGES.get(fullname)
        spec = None if change is None else PathFinder.find_spec(fullname, path, target)
        if change is None or spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def loaded(module: ModuleType) -> None:
            load(module)
            change(module)

        spec.loader.exec_module = loaded  # type: ignore[method-assign]
        return spec


if FILE:
    dates.datetime = Moved  # type: ignore[misc]
    sys.meta_path.insert(0, _Changing())
