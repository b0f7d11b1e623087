"""Pictures of every page, to be looked at: `python -m tests.browser.screenshots DIR`."""

import sys
from pathlib import Path

from playwright.sync_api import Browser

from libs.servers.embedded_thread import held_in_thread
from tests.browser import looks
from tests.browser.desk import fresh_desk, guarded_console, shown_desk


def main(folder: Path) -> None:
    """Write PAGE-LOOK.png into the folder, and fresh-PAGE-LOOK.png of a desk with nothing on it."""
    folder.mkdir(parents=True, exist_ok=True)
    with shown_desk() as shown, looks.chromium() as browser:
        for name in looks.PAGES:
            draw(browser, f"{shown.url}{looks.path_of(name, shown)}", folder / name)
        with held_in_thread(lambda: guarded_console(shown.desk.settings)) as guarded:
            draw(browser, f"{guarded}/login", folder / "login")
    with fresh_desk() as fresh, looks.chromium() as browser:
        for name, path in looks.PATHS.items():
            draw(browser, f"{fresh}{path}", folder / f"fresh-{name}")


def draw(browser: Browser, url: str, to: Path) -> None:
    """The page in every look."""
    page = browser.new_page()
    page.goto(url)
    page.wait_for_load_state("networkidle")
    for name, look in looks.LOOKS.items():
        look.put_on(page)
        page.screenshot(path=to.with_name(f"{to.name}-{name}.png"), full_page=True)
    page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
