"""How pages are looked at: which pages, in which looks, in which browser."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.browser.desk import Shown

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
COMING_MS = 120_000
"""Statistics, and the packages for them, on a busy machine."""
DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
COLOURS = {"runOnly": ["color-contrast"]}
REST = {"rules": {"color-contrast": {"enabled": False}}}


@dataclass(frozen=True)
class Look:
    """A window's size and theme, and what axe looks for in it: colours cost the most time.

    None: nothing that it has not seen in the other looks.
    """

    size: ViewportSize
    theme: Literal["light", "dark"]
    axe: Mapping[str, Any] | None = None

    def put_on(self, page: Page) -> None:
        """Show the page in this look."""
        page.set_viewport_size(self.size)
        page.emulate_media(color_scheme=self.theme)


LOOKS: Mapping[str, Look] = {
    "light": Look(DESKTOP, "light", {}),
    "dark": Look(DESKTOP, "dark", COLOURS),
    "phone": Look(PHONE, "light", REST),
    "phone-dark": Look(PHONE, "dark"),
}
PAGES = (
    "overview",
    "tail",
    "cycles",
    "cycles-found",
    "cycles-wrong",
    "cycles-compared",
    "cycle-request",
    "cycle",
    "operations",
    "operation",
    "traced",
    "traced-calls",
    "traced-waiting",
    "traced-failed",
    "traced-panel",
    "model-call",
    "decisions",
    "decision",
    "exit",
    "approvals",
    "portfolio",
    "performance",
    "ticker",
    "exits",
    "leaderboard",
    "studies",
    "strategies",
    "strategy",
    "compared",
    "reports",
    "schedule",
    "notifications",
    "letters",
    "letter",
    "costs",
    "bus",
    "settings",
    "not-found",
)
"""By name; `path_of` says where each is."""
STATUSES: Mapping[str, int] = {"not-found": 404, "cycles-wrong": 422}
"""Of pages that are refusals; all others answer 200."""


PATHS: Mapping[str, str] = {
    "overview": "/",
    "tail": "/tail",
    "cycles": "/cycles",
    "cycle-request": "/cycles/new",
    "operations": "/operations",
    "decisions": "/decisions",
    "approvals": "/approvals",
    "portfolio": "/portfolio",
    "performance": "/performance",
    "exits": "/exits",
    "leaderboard": "/leaderboard",
    "studies": "/studies",
    "strategies": "/strategies",
    "reports": "/reports",
    "schedule": "/schedule",
    "notifications": "/notifications",
    "letters": "/letters",
    "costs": "/costs",
    "bus": "/bus",
    "settings": "/settings",
    "not-found": "/nowhere",
}
"""Where the pages are that every desk has."""


def path_of(page: str, shown: Shown) -> str:
    """Where the page is at this desk."""
    traced, trader = f"/cycles/{shown.traced.modelled}", f"/operations/{shown.traced.trader}"
    paths = {
        **PATHS,
        "cycles-found": f"/cycles?account={shown.account}&sort=took",
        "cycles-wrong": "/cycles?account=mian",
        "cycles-compared": f"/cycles/compare?id={shown.sold}&id={shown.failed}",
        "cycle": f"/cycles/{shown.decided['cycle_id']}?calls=true",
        "operation": f"/operations/{shown.operation}",
        "traced": traced,
        "traced-calls": f"{traced}?calls=true",
        "traced-waiting": f"/cycles/{shown.waiting}",
        "traced-failed": f"/cycles/{shown.traced.refused}",
        "traced-panel": f"{traced}#{trader}/calls/4",
        "model-call": f"/operations/{shown.traced.analyst}/calls/0",
        "decision": f"/decisions/{shown.decided['cycle_id']}/rules",
        "exit": f"/decisions/{shown.sold}/rules",
        "portfolio": f"/portfolio?account={shown.account}",
        "performance": f"/performance?account={shown.account}",
        "ticker": f"/tickers/AAPL?account={shown.account}",
        "exits": f"/exits?account={shown.account}",
        "strategy": f"/strategies/{shown.strategy}",
        "compared": f"/strategies?names={shown.strategy}&names={shown.other}",
        "reports": f"/reports?account={shown.account}",
        "letter": f"/letters/{shown.letter}",
    }
    return paths[page]


def chromium_path() -> str:
    """The system's Chromium; skips with the reason where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("chromium is not installed, which looks at the pages")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser while the block runs. Nothing asynchronous runs in this thread meanwhile."""
    found = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


def axe() -> str:
    """axe-core's source, from a node_modules that is on the PATH by its .bin; else a skip."""
    folders = (Path(each) for each in os.environ.get("PATH", "").split(os.pathsep))
    found = (each.parent / "axe-core/axe.min.js" for each in folders if each.name == ".bin")
    source = next((each for each in found if each.is_file()), None)
    if source is None:
        pytest.skip("axe-core is not installed (docs/console.md says how)")
    return source.read_text()
