"""The table of metrics in docs/metrics.md, made from libs/telemetry/metrics.py.

`python -m deploy.reference.metrics_page docs/metrics.md` rewrites it between its two marks.
"""

import sys
from pathlib import Path

from deploy.reference import table_in_page
from libs.telemetry.metric import Metric
from libs.telemetry.metrics import all_metrics

BEGIN = "<!-- metrics: made by `python -m deploy.reference.metrics_page docs/metrics.md` -->"
END = "<!-- end of metrics -->"


def table() -> str:
    """One row a metric, in the order of their declaration."""
    rows = [_row(metric) for metric in all_metrics()]
    head = ["| metric | type | what it says | labels | series at most |"]
    return "\n".join([*head, "| --- | --- | --- | --- | --- |", *rows])


def rewritten(text: str) -> str:
    """`text` with the table between its marks made anew. Raises ValueError without marks."""
    return table_in_page.put(text, BEGIN, END, table())


def _row(metric: Metric) -> str:
    labels = "; ".join(f"`{label.name}`: {label.values}" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {metric.about} | {labels} | {metric.bound:,} |"


def main(path: Path) -> None:
    """Rewrite the page."""
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
