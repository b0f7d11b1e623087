"""Pictures of every page, to be looked at: `python -m tests.browser.screenshots DIR`."""

import sys
from pathlib import Path

from tests.browser import looks
from tests.browser.desk import shown_desk


def main(folder: Path) -> None:
    """Write PAGE-LOOK.png into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with shown_desk() as shown, looks.chromium() as browser:
        page = browser.new_page(base_url=shown.url)
        for name in looks.PAGES:
            page.goto(looks.path_of(name, shown))
            page.wait_for_load_state("networkidle")
            for look_name, look in looks.LOOKS.items():
                look.put_on(page)
                page.screenshot(path=folder / f"{name}-{look_name}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
