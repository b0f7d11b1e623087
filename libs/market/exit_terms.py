"""The exit rules as `exit_signals.toml` states them: read and checked."""

from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError

from libs.quant.exits.terms import TermsFile
from libs.runtime.errors import DeskError
from libs.runtime.own_text import Unreadable, text_in, toml_in
from libs.runtime.wording import place_of, worded

FAULTS_NAMED = 3
"""Faults of the file that one message names."""


class BadExitTerms(DeskError):
    """The file with the positions' exit rules cannot be used."""

    code = "bad_exit_terms"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path.name} cannot be used: {why}; see docs/exit-signals.md")


def terms_in(path: Path) -> TermsFile:
    """The terms in the file; the defaults where there is none. Raises BadExitTerms."""
    try:
        return TermsFile.model_validate(toml_in(text_in(path), parse_float=Decimal))
    except FileNotFoundError:
        return TermsFile()
    except OSError as error:
        raise BadExitTerms(path, error.strerror or str(error)) from error
    except Unreadable as error:
        raise BadExitTerms(path, error.message) from error
    except ValidationError as error:
        raise BadExitTerms(path, _faults(error)) from error


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
