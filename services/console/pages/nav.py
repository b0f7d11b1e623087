"""Which pages there are, as the menu lists them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A page in the menu; `icon` is a symbol of static/icons.svg."""

    path: str
    title: str
    icon: str


@dataclass(frozen=True)
class Group:
    """Pages that belong together; the first group has no title."""

    title: str
    entries: Sequence[Entry]


NAV: Sequence[Group] = (
    Group(
        "",
        (
            Entry("/", "Overview", "overview"),
            Entry("/approvals", "Approvals", "approvals"),
            Entry("/tail", "Live tail", "tail"),
        ),
    ),
    Group(
        "Work",
        (
            Entry("/cycles", "Cycles", "cycles"),
            Entry("/decisions", "Decisions", "decisions"),
            Entry("/operations", "Operations", "operations"),
        ),
    ),
    Group(
        "Results",
        (
            Entry("/portfolio", "Portfolio", "portfolio"),
            Entry("/performance", "Performance", "performance"),
            Entry("/exits", "Exit signals", "exits"),
            Entry("/leaderboard", "Leaderboard", "leaderboard"),
            Entry("/strategies", "Strategies", "strategies"),
            Entry("/reports", "Daily reports", "reports"),
        ),
    ),
    Group(
        "Upkeep",
        (
            Entry("/schedule", "Schedule", "schedule"),
            Entry("/letters", "Dead letters", "letters"),
            Entry("/costs", "Costs", "costs"),
            Entry("/bus", "Bus", "bus"),
        ),
    ),
)
