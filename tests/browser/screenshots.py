"""Pictures of every page, to be looked at: `python -m tests.browser.screenshots DIR`."""

import sys
from pathlib import Path

from tests.browser import looks
from tests.browser.desk import shown_desk

DARK_PHONE = {"phone-dark": {**looks.LOOKS["phone"], "color_scheme": "dark"}}


def main(folder: Path) -> None:
    """Write PAGE-LOOK.png into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with shown_desk() as shown, looks.chromium() as browser:
        for look, given in {**looks.LOOKS, **DARK_PHONE}.items():
            context = browser.new_context(base_url=shown.url, **given)  # type: ignore[arg-type]
            page = context.new_page()
            for name in looks.PAGES:
                page.goto(looks.path_of(name, shown))
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
            context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
