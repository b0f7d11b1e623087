"""Metrics of a bounded number of series, in one registry.

Each metric says how many series it may have. Once it has them, further label values are counted
together as `other`: no ticker, id or invented tool name can fill a server's memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client import Counter as PrometheusCounter
from prometheus_client import Gauge as PrometheusGauge
from prometheus_client import Histogram as PrometheusHistogram

OTHER = "other"
SERIES_MAX = 64
"""Of a metric with labels that does not name its own bound."""
CALLS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Buckets of times inside the desk, in seconds."""
MODELS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""Buckets of times that people and models take, in seconds."""

EXPOSITION_TYPE = CONTENT_TYPE_LATEST
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
# No second series for every counter that says when it began: a restart shows in the counter.
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Label:
    """A label; `values` says in words which ones it may take."""

    name: str
    values: str


class Metric:
    """A metric with its labels; values are given in the labels' order."""

    kind: str
    series_each = 1
    """Series of one set of label values."""

    def __init__(
        self, name: str, about: str, labels: Sequence[Label] = (), series_max: int = SERIES_MAX
    ) -> None:
        self.name = name
        self.about = about
        self.labels = tuple(labels)
        self.series_max = series_max if labels else 1
        self._children: dict[tuple[str, ...], Any] = {}
        if self.kind != Gauge.kind:
            self._collector  # noqa: B018 - what is counted is shown as 0 before the first

    @cached_property
    def _collector(self) -> Any:
        return self._make()

    def _make(self) -> Any:
        raise NotImplementedError

    @property
    def bound(self) -> int:
        """The most series that it has, the one for the overflow included."""
        spare = 1 if self.labels and self.kind != Gauge.kind else 0
        return (self.series_max + spare) * self.series_each

    def sum_of(self, **labels: str) -> float:
        """All that was counted, or measured, under these values of labels, whatever the others."""
        return sum(
            float(sample.value)
            for family in self._collector.collect()
            for sample in family.samples
            if sample.name.endswith(("_total", "_sum")) and labels.items() <= sample.labels.items()
        )

    def begin(self, *values: str) -> None:
        """Show these label values before anything is counted under them.

        Prometheus sees no increase in a series that begins at 1: an alert about the first time
        needs the 0 before it.
        """
        self._of(values)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)

    def _of(self, values: tuple[str, ...]) -> Any:
        """The series of these label values; None where there may be no more of this metric."""
        series = self._children.get(values)
        if series is None and len(self._children) < self.series_max:
            series = self._collector.labels(*values) if values else self._collector
            self._children[values] = series
        return series

    def _of_any(self, values: tuple[str, ...]) -> Any:
        """The series of these label values, or of all that are too many."""
        return self._of(values) or self._collector.labels(*(OTHER for _ in self.labels))


class Counter(Metric):
    """Counts what has happened since the process began."""

    kind = "counter"

    def _make(self) -> Any:
        return PrometheusCounter(self.name, self.about, self._names, registry=REGISTRY)

    def add(self, *values: str, by: float = 1) -> None:
        """Count `by` more."""
        self._of_any(values).inc(by)


class Histogram(Metric):
    """A count of measures below each of some bounds."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        about: str,
        labels: Sequence[Label] = (),
        series_max: int = SERIES_MAX,
        buckets: Sequence[float] = CALLS_S,
    ) -> None:
        self._buckets = buckets
        self.series_each = len(buckets) + 3  # a bucket without a bound, the sum and the count
        super().__init__(name, about, labels, series_max)

    def _make(self) -> Any:
        return PrometheusHistogram(
            self.name, self.about, self._names, buckets=self._buckets, registry=REGISTRY
        )

    def observe(self, value: float, *values: str) -> None:
        """One measure."""
        self._of_any(values).observe(value)


class Gauge(Metric):
    """A figure as it is; a process that never knew it does not show it.

    One series too many is left out: figures of strangers do not add up.
    """

    kind = "gauge"

    def _make(self) -> Any:
        return PrometheusGauge(self.name, self.about, self._names, registry=REGISTRY)

    def set(self, value: float, *values: str) -> None:
        """Show this from now on."""
        series = self._of(values)
        if series is not None:
            series.set(value)

    def add(self, by: float, *values: str) -> None:
        """Show so much more."""
        series = self._of(values)
        if series is not None:
            series.inc(by)

    def replace(self, figures: Mapping[tuple[str, ...], float]) -> None:
        """Show these and no others; `{}` says that nothing is known."""
        if not self.labels and not figures:
            self.set(nan)
            return
        for gone in self._children.keys() - figures.keys():
            del self._children[gone]
            self._collector.remove(*gone)
        for values, value in figures.items():
            self.set(value, *values)


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest(REGISTRY)
