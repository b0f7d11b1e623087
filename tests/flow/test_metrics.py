"""What whole cycles leave in the metrics, and that more of them leave no more series."""

from datetime import date
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.telemetry.metric import REGISTRY
from libs.telemetry.metrics import all_metrics
from services.orchestrator.group.inputs import CancelRequested
from tests.fakes.in_process_desk import InProcessDesk

DAYS = (date(2012, 6, 29), date(2012, 6, 28), date(2011, 3, 15), date(2009, 5, 4))
CYCLES = 6
"""`make soak` has a whole desk run 1,000."""


def request(key: str, **fields: Any) -> CycleRequest:
    return CycleRequest(idempotency_key=key, **{"as_of": DAYS[0], **fields})


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


def series() -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """All series of the desk."""
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in REGISTRY.collect()
        for sample in family.samples
        if family.name.startswith("deskbus_")
    }


async def test_a_cycle_is_counted_from_its_acceptance_to_its_end(desk: InProcessDesk) -> None:
    def counts() -> list[float]:
        return [
            value("deskbus_cycles_accepted_total", kind="decision"),
            value("deskbus_cycles_total", kind="decision", status="completed"),
            value("deskbus_cycle_seconds_count", kind="decision"),
            value("deskbus_operations_total", step="plan", status="completed"),
            value("deskbus_answers_total", question="claim", outcome="granted"),
            value("deskbus_answers_total", question="request", outcome="accepted"),
        ]

    before = counts()
    await desk.run(request("m-1"))
    grown = [after - was for was, after in zip(before, counts(), strict=True)]
    assert grown[:4] == [1, 1, 1, 1]
    assert grown[4] >= 6
    assert grown[5] == 1


async def test_calls_of_models_are_counted_by_who_was_asked(desk: InProcessDesk) -> None:
    before = value("deskbus_model_calls_total", provider="rules", step="plan", outcome="ok")
    await desk.run(request("m-2"))
    after = value("deskbus_model_calls_total", provider="rules", step="plan", outcome="ok")
    assert after > before
    assert value("deskbus_model_cost_usd_total", provider="rules", step="plan") == 0


async def test_a_cancelled_cycle_is_counted_as_one(desk: InProcessDesk) -> None:
    before = value("deskbus_cycles_total", kind="decision", status="cancelled")
    stopped = value("deskbus_operations_total", step="digest", status="cancelled")
    answer = desk.ask(request("m-3"))
    assert answer.cycle_id is not None
    desk.commit(CancelRequested(answer.cycle_id, "changed my mind"))
    assert value("deskbus_cycles_total", kind="decision", status="cancelled") == before + 1
    assert value("deskbus_operations_total", step="digest", status="cancelled") == stopped + 1


@pytest.mark.slow
async def test_more_cycles_do_not_make_more_series(desk: InProcessDesk) -> None:
    for number, day in enumerate(DAYS):
        await desk.run(request(f"first-{number}", as_of=day))
    known = series()
    for number in range(CYCLES):
        account = Pipeline(name="rules", account=f"account-{number}")
        await desk.run(
            request(f"more-{number}", as_of=DAYS[number % len(DAYS)], pipelines=(account,))
        )
    assert series() == known
    assert len(known) < sum(metric.bound for metric in all_metrics())
