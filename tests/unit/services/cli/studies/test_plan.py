"""What a study would cost: by its file alone, and nobody is asked."""

import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contracts.study import Study
from deploy.reference.plan_sample import EXAMPLE, ROOT, written
from libs.runtime.settings import Settings
from services.cli.studies.file import read_study
from services.cli.studies.plan import plan_of

EXAMPLES = sorted((ROOT / "examples" / "studies").glob("*.yaml"))


@pytest.fixture
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a plan asks nobody")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("nobody_to_ask")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_is_a_study_whose_plan_asks_nobody(path: Path) -> None:
    study = read_study(path)

    plan = plan_of(study, Settings())

    assert plan.dates == study.dates.count
    assert plan.usd_most <= study.budget.cost_usd


@pytest.mark.usefixtures("nobody_to_ask")
def test_the_plan_of_a_paid_model_has_its_probes_and_stays_within_its_budget() -> None:
    study = read_study(ROOT / EXAMPLE)

    plan = plan_of(study, Settings())

    named, masked, *controls = plan.arms
    assert (plan.cells, study.probe) == (study.dates.count + study.probe, 30)
    assert (named.probes, masked.probes) == (0, 30)
    assert masked.calls == named.calls + 30
    assert masked.tokens > named.tokens
    spent = [arm.usd for arm in plan.arms if arm.usd is not None]
    assert len(spent) == len(plan.arms), "every model of the example has a price"
    assert Decimal(0) < sum(spent) < study.budget.cost_usd
    assert sum(arm.tokens for arm in plan.arms) < study.budget.tokens
    assert {arm.calls for arm in controls} == {0}


def test_the_plan_in_the_docs_is_the_one_that_is_printed() -> None:
    """Where it is not: `make contracts`."""
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")

    assert written(page) == page


def test_what_a_probe_adds_is_counted_for_masked_models_alone() -> None:
    file = {
        "name": "it",
        "dates": {"first": "2012-01-03", "last": "2012-06-29", "count": 5},
        "universe": ["AAPL", "IBM"],
        "arms": [
            {"name": "blind", "provider": "claude", "masked": True},
            {"name": "rules-masked", "masked": True},
        ],
    }
    without = plan_of(Study.model_validate(file), Settings())
    probed = plan_of(Study.model_validate({**file, "probe": 5}), Settings())

    calls = [(a.calls, b.calls) for a, b in zip(without.arms, probed.arms, strict=True)]
    assert calls == [(65, 70), (0, 0)]
    assert probed.minutes > without.minutes
