"""Results as files: `exit_signals/exit_signals_<ticker>_<timestamp>.json` of the data directory."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from libs.runtime.own_folder import make_folder
from libs.runtime.whole_file import OWN, beside

FILES_MAX = 10_000
"""Results that the directory may hold; a further one is not written, and the answer says so."""
SUFFIX_MAX = 100
"""Results of one ticker at one moment."""
TICKER_CHARS_MAX = 32


class ResultFiles:
    """Writes results, each whole or not at all, under a name of its own."""

    def __init__(self, directory: Path, clock: Callable[[], datetime]) -> None:
        self._directory = directory
        self._clock = clock

    def save(self, result: Mapping[str, Any]) -> dict[str, str | None]:
        """`file_path`, absolute; None with a `file_error` where it could not be written."""
        try:
            return {"file_path": str(self._write(result))}
        except OSError as error:
            why = error.strerror or str(error)
            warning = f"the result was not saved in {self._directory.absolute()}: {why}"
            return {"file_path": None, "file_error": warning}

    def _write(self, result: Mapping[str, Any]) -> Path:
        make_folder(self._directory)
        if sum(1 for _ in self._directory.iterdir()) >= FILES_MAX:
            raise OSError(f"it holds {FILES_MAX} files already; move some away")
        body = orjson.dumps(dict(result), option=orjson.OPT_INDENT_2, default=str)
        with beside(self._directory / "result", body, OWN) as written:
            return self._linked(written, safe_name(result.get("ticker")))

    def _linked(self, written: Path, ticker: str) -> Path:
        """The file under its own name, which nothing had before: a link is made or refused."""
        stamp = f"{self._clock():%Y%m%d_%H%M%S}"
        for number in range(1, SUFFIX_MAX + 1):
            more = "" if number == 1 else f"_{number}"
            path = self._directory / f"exit_signals_{ticker}_{stamp}{more}.json"
            try:
                path.hardlink_to(written)
            except FileExistsError:
                continue
            return path.absolute()
        raise OSError(f"there are {SUFFIX_MAX} results of {ticker} of this second")


def safe_name(ticker: object) -> str:
    """A ticker as a part of a file's name: no separators, no dots that lead elsewhere."""
    known = re.sub(r"[^A-Za-z0-9.-]+", "-", ticker) if isinstance(ticker, str) else ""
    return re.sub(r"\.{2,}", ".", known).strip(".-")[:TICKER_CHARS_MAX] or "unknown"
