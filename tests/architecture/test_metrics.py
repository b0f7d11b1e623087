"""Every metric is documented, well named, and of a bounded number of series."""

import re

import pytest

from contracts.subjects.commands import COMMANDS
from contracts.subjects.table import QUERIES, REQUESTS
from libs.telemetry.metric import Metric
from libs.telemetry.metrics import SUBJECTS_MAX, all_metrics

SERIES_MAX = 25_000
"""Of one process at the very most; a desk at work has some hundreds."""
UNITS = ("_seconds", "_total", "_usd_left", "_tokens_left")
UNBOUNDED = {"id", "ticker", "asset", "cycle_id", "op_id", "order_id", "key", "text", "message"}


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_a_metric_is_named_and_described_as_all_are(metric: Metric) -> None:
    assert re.fullmatch(r"deskbus_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.about.endswith(".")
    assert len(metric.about.split()) >= 3
    assert all(label.values for label in metric.labels)


@pytest.mark.parametrize("metric", all_metrics(), ids=lambda metric: metric.name)
def test_no_label_is_an_id_or_a_text(metric: Metric) -> None:
    assert {label.name for label in metric.labels}.isdisjoint(UNBOUNDED)


def test_all_series_together_are_few() -> None:
    assert sum(metric.bound for metric in all_metrics()) < SERIES_MAX


def test_no_two_metrics_have_a_name_in_common() -> None:
    names = [metric.name for metric in all_metrics()]
    assert len(names) == len(set(names))


def test_every_subject_has_room() -> None:
    outcomes = 3
    assert (len(COMMANDS) + len(QUERIES) + len(REQUESTS)) * outcomes < SUBJECTS_MAX
