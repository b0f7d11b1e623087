"""The committee's mistakes, made on purpose, so that it can be seen what the desk does with them.

Which week has which is stated here: the same day always has the same mistake. Pure.
"""

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Any

import orjson
from pydantic import BaseModel

from libs.llm.committee import lines
from libs.llm.committee.lines import chosen


class Slip(StrEnum):
    """A mistake of one answer.

    `loose`: a number that no fact has. `unknown_name`: a fact that is none, which it puts right
    when asked. `broken`: an answer without a field, then one about nobody's ticker, then a right
    one. `silent`: prose in place of the answer, however often it is asked.
    """

    LOOSE = "loose"
    UNKNOWN_NAME = "unknown_name"
    BROKEN = "broken"
    SILENT = "silent"


SILENT_WEEK = (2010, 6)
"""The week in which the trader answers nothing usable, and its pipeline fails."""
NOBODY = "ZZZZ"
WHISPER = "whisper_number"
SILENCE = (
    "I would rather wait for the dust to settle before putting anything into a form. Markets this "
    "nervous reward patience."
)


def slip_of(agent: str, day: date) -> Slip | None:
    """The mistake of an agent on a day; None on most."""
    year, week, _ = day.isocalendar()
    match agent:
        case "trader" if (year, week) == SILENT_WEEK:
            return Slip.SILENT
        case "trader" if week % 4 == 0:
            return Slip.LOOSE
        case "quant" if week % 6 == 3:
            return Slip.UNKNOWN_NAME
        case "sentiment" if week % 8 == 4:
            return Slip.BROKEN
        case _:
            return None


def text_of(answer: BaseModel, slip: Slip | None, tries: int, day: date) -> str:
    """The answer as the reply's text, with the mistake in it; `tries` were refused before."""
    body = answer.model_dump(mode="json")
    match slip:
        case Slip.SILENT:
            return SILENCE
        case Slip.LOOSE:
            return _json(_with_loose(body, day))
        case Slip.UNKNOWN_NAME if tries == 0:
            return _json(_with_unknown_name(body))
        case Slip.BROKEN if tries == 0:
            return _json({key: value for key, value in body.items() if key != "market_mood"})
        case Slip.BROKEN if tries == 1:
            return _json(_about_nobody(body))
        case _:
            return _json(body)


def _with_loose(body: dict[str, Any], day: date) -> dict[str, Any]:
    """In the first buy's first reason; where nothing is bought there is nothing to be wrong of."""
    if body["picks"] and body["picks"][0]["reasons"]:
        words = chosen(lines.LOOSE, "loose", day)
        body["picks"][0]["reasons"][0]["why"] = words
    return body


def _with_unknown_name(body: dict[str, Any]) -> dict[str, Any]:
    first = body["assets"][0]
    if first["reasons"]:
        first["reasons"][0]["fact"] = f"{first['ticker']}.{WHISPER}"
    return body


def _about_nobody(body: dict[str, Any]) -> dict[str, Any]:
    if body["tickers"]:
        body["tickers"][0]["ticker"] = NOBODY
    return body


def _json(body: Mapping[str, Any]) -> str:
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
