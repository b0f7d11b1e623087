"""Which pages there are, as the menu lists them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class MenuEntry:
    """A page in the menu; `icon` is a symbol of static/icons.svg.

    `key` goes there after `g`; each is another letter. `meaning` are further words by which the
    search finds it.
    """

    path: str
    title: str
    icon: str
    key: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class MenuGroup:
    """Pages that belong together; the first group has no title."""

    title: str
    entries: Sequence[MenuEntry]


NAV: Sequence[MenuGroup] = (
    MenuGroup(
        "",
        (
            MenuEntry("/", "Overview", "overview", "o"),
            MenuEntry("/approvals", "Approvals", "approvals", "a", "approve reject proposal"),
            MenuEntry("/tail", "Live tail", "tail", "t"),
        ),
    ),
    MenuGroup(
        "Work",
        (
            MenuEntry("/cycles", "Cycles", "cycles", "c"),
            MenuEntry("/decisions", "Decisions", "decisions", "d"),
            MenuEntry("/operations", "Operations", "operations", "w"),
        ),
    ),
    MenuGroup(
        "Results",
        (
            MenuEntry(
                "/portfolio", "Portfolio", "portfolio", "p", "positions holdings cash sell stops"
            ),
            MenuEntry("/risk", "Risk", "risk", "k", "limits exposure volatility drawdown cut veto"),
            MenuEntry(
                "/performance", "Performance", "performance", "f", "return benchmark P&L Sharpe"
            ),
            MenuEntry("/exits", "Exit signals", "exits", "e"),
            MenuEntry("/leaderboard", "Leaderboard", "leaderboard", "l"),
            MenuEntry("/studies", "Studies", "studies", "u"),
            MenuEntry("/strategies", "Strategies", "strategies", "s"),
            MenuEntry("/reports", "Daily reports", "reports", "r"),
        ),
    ),
    MenuGroup(
        "Upkeep",
        (
            MenuEntry("/schedule", "Schedule", "schedule", "j"),
            MenuEntry("/notifications", "Notifications", "notifications", "n"),
            MenuEntry("/letters", "Dead letters", "letters", "x"),
            MenuEntry("/costs", "Costs", "costs", "m", "budget tokens spend"),
            MenuEntry("/bus", "Bus", "bus", "b"),
            MenuEntry("/settings", "Settings", "settings", "v", "configuration"),
        ),
    ),
)

FORMS: Sequence[MenuEntry] = (
    MenuEntry("/cycles/new", "Start a cycle", "add", "i", "request run decide buy"),
)
"""Pages that the menu does not list and the search finds."""
