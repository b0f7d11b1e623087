"""What a dashboard is: rows of panels, each with its queries; and what several boards have."""

from collections.abc import Sequence
from dataclasses import dataclass

RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Graph:
    """Lines over time: queries by the words of their legend."""

    title: str
    about: str
    unit: str
    queries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FigurePanel:
    """One number. From `red_from` on, or up to `red_to`, it is red."""

    title: str
    about: str
    unit: str
    query: str
    red_from: float | None = None
    red_to: float | None = None


@dataclass(frozen=True)
class PanelRow:
    """Panels side by side below a title."""

    title: str
    panels: Sequence[Graph | FigurePanel]


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    about: str
    rows: Sequence[PanelRow]


CHECKS_THAT_FAIL = FigurePanel(
    "Checks that fail",
    "Of readiness, over all processes.",
    "none",
    "count(deskbus_ready == 0) or vector(0)",
    red_from=1,
)


def p95(metric: str, by: str) -> str:
    """Below which 95% of a histogram's measures lie."""
    return f"histogram_quantile(0.95, sum by ({by}, le) (rate({metric}_bucket{RATE})))"


def rate(metric: str, by: str) -> str:
    """How often a second."""
    return f"sum by ({by}) (rate({metric}{RATE}))"


def rarely(metric: str, by: str) -> str:
    """How often a second; a line at 0 where it has never happened, which is no lack of data."""
    return f"({rate(metric, by)} or on() vector(0))"
