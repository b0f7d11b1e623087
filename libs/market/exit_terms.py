"""The exit rules as `exit_signals.toml` states them: read and checked."""

import asyncio
import time
from decimal import Decimal
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts.types import shortened
from libs.quant.exits.terms import TermsFile
from libs.runtime.errors import DeskError
from libs.runtime.own_text import UnreadableFile, text_in, toml_in
from libs.runtime.wording import place_of, worded

log = structlog.get_logger()

SETTLED_S = 2.0
"""Changed rules count once the file stayed as it is for so long: an editor may be saving it."""
WAIT_S = 3.0
"""How long a read waits for that; then the rules before the change stand."""
POLL_S = 0.2
NOTE_CHARS_MAX = 400
"""As a contract's short text."""
FAULTS_NAMED = 3
"""Faults of the file that one message names."""


class BadExitTerms(DeskError):
    """The file with the exit rules is invalid."""

    code = "bad_exit_terms"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path.name} cannot be used: {why}; see docs/exit-signals.md")


class NotSettled(BadExitTerms):
    """The file changed just now, and may be half saved."""


def terms_in(path: Path) -> TermsFile:
    """The terms in the file; the defaults where there is none. Raises BadExitTerms."""
    try:
        return TermsFile.model_validate(toml_in(text_in(path), parse_float=Decimal))
    except FileNotFoundError:
        return TermsFile()
    except OSError as error:
        raise BadExitTerms(path, error.strerror or str(error)) from error
    except UnreadableFile as error:
        raise BadExitTerms(path, error.message) from error
    except ValidationError as error:
        raise BadExitTerms(path, _faults(error)) from error


class DeskExitRules:
    """The exit rules of a running desk: the file's at each read, or the last good ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._good: TermsFile | None = None
        self._seen: tuple[TermsFile, float] | None = None
        self._fault = ""
        try:
            self._good = terms_in(path)
        except BadExitTerms as error:
            self._note(error.message)

    @property
    def note(self) -> str:
        """That rules read before stand, and why the file could not be used at the last read; empty
        where it could."""
        if not self._fault:
            return ""
        return shortened(f"the exit rules read before stand: {self._fault}", NOTE_CHARS_MAX)

    async def read(self) -> TermsFile:
        """The terms in the file, or the last good ones where it cannot be used. Raises BadExitTerms
        where it could not be used since the start."""
        give_up_at = time.monotonic() + WAIT_S
        try:
            while True:
                try:
                    self._good = await asyncio.to_thread(self._settled)
                    break
                except NotSettled:
                    if time.monotonic() >= give_up_at:
                        raise
                await asyncio.sleep(POLL_S)
        except BadExitTerms as error:
            self._note(error.message)
            if self._good is None:
                raise
        else:
            self._note("")
        return self._good

    def _settled(self) -> TermsFile:
        """The terms in the file. Raises BadExitTerms; NotSettled while they changed just now."""
        terms = terms_in(self._path)
        if self._good in (None, terms):
            self._seen = None
            return terms
        now = time.monotonic()
        if self._seen is None or self._seen[0] != terms:
            self._seen = terms, now
        if max(now - self._seen[1], _rested_s(self._path)) < SETTLED_S:
            raise NotSettled(self._path, f"it changed less than {SETTLED_S:g} s ago")
        if terms == TermsFile():
            log.warning("market.exit_rules_gone", file=self._path.name)
        return terms

    def _note(self, fault: str) -> None:
        """Log what has become of the file, once a change."""
        if fault == self._fault:
            return
        self._fault = fault
        if fault:
            log.warning("market.exit_rules_bad", reason=fault, uses_earlier=self._good is not None)
        else:
            log.info("market.exit_rules_good_again", file=self._path.name)


def _rested_s(path: Path) -> float:
    """For how long a file has not changed, or the folder that it is no longer in."""
    try:
        of = (path if path.exists() else path.parent).stat()
    except OSError:
        return 0.0
    return time.time() - max(of.st_mtime, of.st_ctime)


def _faults(error: ValidationError) -> str:
    """The first FAULTS_NAMED things that are wrong, each with its place. A mistyped name comes
    before the name that is missing by it."""
    wrong = error.errors(include_url=False)
    faults = [
        f"{place_of(fault['loc'], 'the file')}: {worded(fault, TermsFile)}"
        for fault in sorted(wrong, key=lambda one: one["type"] != "extra_forbidden")
    ]
    left = len(faults) - FAULTS_NAMED
    return " | ".join(faults[:FAULTS_NAMED]) + (f" (and {left} more)" if left > 0 else "")
