"""The table of metrics in docs/metrics.md, made from libs/telemetry/metrics.py."""

from libs.telemetry.metric import Metric
from libs.telemetry.metrics import all_metrics


def table() -> str:
    """One row a metric, in the order of their declaration."""
    rows = [_row(metric) for metric in all_metrics()]
    head = ["| metric | type | what it says | labels | series at most |"]
    return "\n".join([*head, "| --- | --- | --- | --- | --- |", *rows])


def _row(metric: Metric) -> str:
    labels = "; ".join(f"`{label.name}`: {label.values}" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {metric.about} | {labels} | {metric.bound:,} |"
