"""How what a program hears is counted and traced; and who loads FastStream for it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from faststream.nats import TestNatsBroker

from contracts.audit import Event, EventAt, EventType
from contracts.subjects.subject import PREFIX
from libs.bus.listening.heard import CaughtUp
from libs.bus.listening.listener import Listener
from libs.bus.listening.telemetry import template
from libs.telemetry import metrics, tracing
from tests.fakes.events import CYCLE, step, subject

TEMPLATE = f"{PREFIX}.evt.orchestrator.operation_started.*"


class Program:
    """A listener that hears operations begin, over FastStream's broker in memory."""

    def __init__(self, error: Exception | None = None) -> None:
        self.listener = Listener("nats://127.0.0.1:4222", "user", Path("nowhere"))

        @self.listener.hears(EventType.OPERATION_STARTED)
        async def on_step(event: Event) -> None:
            if error is not None:
                raise error

    async def hear(self, placed: EventAt) -> None:
        message = CaughtUp.of(placed)
        async with TestNatsBroker(self.listener.broker, connect_only=False) as broker:
            await broker.publish(message.data, message.subject, headers=message.headers)


def test_a_subjects_template_names_no_cycle_and_strangers_share_one() -> None:
    assert template(subject(step(1))) == TEMPLATE
    assert len({template(f"{PREFIX}.evt.{name}.x.y") for name in "abc"} | {template("")}) == 1


@pytest.mark.parametrize(("error", "outcome"), [(None, "taken"), (ZeroDivisionError(), "failed")])
async def test_what_is_heard_is_counted_by_the_subjects_template(
    error: Exception | None, outcome: str
) -> None:
    before = metrics.HEARD.sum_of(subject=TEMPLATE, outcome=outcome)
    try:
        await Program(error).hear(step(1))
    except ZeroDivisionError:
        assert outcome == "failed"
    assert metrics.HEARD.sum_of(subject=TEMPLATE, outcome=outcome) == before + 1


async def test_what_is_heard_stands_in_its_cycles_trace(exported: list[Any]) -> None:
    async with tracing.traced("mine"):
        await Program().hear(step(1))
    (span,) = exported
    assert (span.name, span.context.trace_id) == (f"hear {TEMPLATE}", CYCLE.int)


async def test_a_failures_words_are_in_no_span(exported: list[Any]) -> None:
    async with tracing.traced("mine"):
        with pytest.raises(ZeroDivisionError):
            await Program(ZeroDivisionError("https://SECRET@channel")).hear(step(1))
    (span,) = exported
    assert span.attributes == {"error.type": "defect"}
    assert "SECRET" not in span.to_json()


def test_who_hears_no_events_does_not_load_faststream() -> None:
    program = (
        "import sys, services.launcher, services.trader.app, services.orchestrator.app\n"
        "import services.console.app, services.provisioner.app\n"
        "print([name for name in ('faststream', 'apprise') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
