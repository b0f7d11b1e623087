"""Which pages there are, as the menu lists them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A page in the menu; `icon` is a symbol of static/icons.svg.

    `key` goes there after `g`; each is another letter.
    """

    path: str
    title: str
    icon: str
    key: str = ""


@dataclass(frozen=True)
class Group:
    """Pages that belong together; the first group has no title."""

    title: str
    entries: Sequence[Entry]


NAV: Sequence[Group] = (
    Group(
        "",
        (
            Entry("/", "Overview", "overview", "o"),
            Entry("/approvals", "Approvals", "approvals", "a"),
            Entry("/tail", "Live tail", "tail", "t"),
        ),
    ),
    Group(
        "Work",
        (
            Entry("/cycles", "Cycles", "cycles", "c"),
            Entry("/decisions", "Decisions", "decisions", "d"),
            Entry("/operations", "Operations", "operations", "w"),
        ),
    ),
    Group(
        "Results",
        (
            Entry("/portfolio", "Portfolio", "portfolio", "p"),
            Entry("/performance", "Performance", "performance", "f"),
            Entry("/exits", "Exit signals", "exits", "e"),
            Entry("/leaderboard", "Leaderboard", "leaderboard", "l"),
            Entry("/studies", "Studies", "studies", "u"),
            Entry("/strategies", "Strategies", "strategies", "s"),
            Entry("/reports", "Daily reports", "reports", "r"),
        ),
    ),
    Group(
        "Upkeep",
        (
            Entry("/schedule", "Schedule", "schedule", "j"),
            Entry("/notifications", "Notifications", "notifications", "n"),
            Entry("/letters", "Dead letters", "letters", "x"),
            Entry("/costs", "Costs", "costs", "m"),
            Entry("/bus", "Bus", "bus", "b"),
            Entry("/settings", "Settings", "settings", "v"),
        ),
    ),
)

FORMS: Sequence[Entry] = (Entry("/cycles/new", "Start a cycle", "add", "i"),)
"""Pages that the menu does not list and the search finds."""
