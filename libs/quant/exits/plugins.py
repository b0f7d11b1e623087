"""Exit rules of the user's: how an answer is read, and the rule that it makes. Pure."""

import math
from decimal import Decimal

from pydantic import JsonValue

from contracts.plugins import ExitAnswer, function_of
from contracts.types import shortened
from libs.quant.exits.rules import ExitRule, Finding, Fired, NoSignal, NotEvaluated
from libs.quant.words import one_line

REASON_CHARS_MAX = 200
PCT_PLACES = 4
"""As `contracts.types.Percent` keeps them."""


def answer_of(answer: JsonValue, problem: str = "") -> ExitAnswer:
    """The answer about a position. None is nothing to sell. One that does not count, and a problem
    in its place, sells nothing and has `failed`."""
    if problem:
        return _none(problem)
    match answer:
        case None:
            return ExitAnswer(sell_pct=Decimal(0), reason="it returned None")
        case [int() | float() as pct, str(reason)] if not isinstance(pct, bool):
            pass
        case _:
            said = shortened(repr(answer), 60)
            return _none(f"it returned {said}, and not None, or a percentage and a reason")
    if not math.isfinite(pct) or not 0 <= pct <= 100:
        return _none(f"it returned {shortened(str(pct), 40)}, which is no percentage from 0 to 100")
    why = one_line(reason, REASON_CHARS_MAX)
    if not why:
        return _none("it returned no reason")
    return ExitAnswer(sell_pct=Decimal(str(round(pct, PCT_PLACES))), reason=why)


def _none(why: str) -> ExitAnswer:
    said = one_line(why, REASON_CHARS_MAX)
    return ExitAnswer(sell_pct=Decimal(0), reason=said, failed=True)


def own_rule(plugin: str, answer: ExitAnswer) -> ExitRule:
    """The rule that has found what the answer says. It is asked once, so of other facts it says
    the same: it acts once on a position."""
    name = function_of(plugin)
    finding = _finding(name, answer)
    return ExitRule(name, True, lambda _: finding, once=True)


def _finding(name: str, answer: ExitAnswer) -> Finding:
    if answer.failed:
        return NotEvaluated(f"{name}: {answer.reason}")
    share = float(answer.sell_pct) / 100
    if not share:
        return NoSignal(answer.reason, {})
    return Fired(share, answer.sell_pct, answer.reason, {})
