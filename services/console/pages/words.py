"""Facts as words on a page. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import orjson
from markupsafe import Markup, escape
from pydantic import JsonValue

from libs.facts import amounts
from libs.quant import ticks
from libs.report import account, approval, ending, rules, story, ticker_facts
from libs.report import results as order_results
from libs.report.calls import results
from libs.report.sections import SectionFact, ShownItems
from libs.report.story import PipelineStory
from libs.report.strategies import page
from libs.report.tickers import TickerRow
from libs.report.tones import Tone, tone
from libs.report.view import HUNDREDTH, Cell, Table
from libs.runtime.setting_names import as_set

UNKNOWN = "\N{EN DASH}"
TEMPO_WHOLE = 10
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


def stamp(at: datetime | None) -> str:
    """`2026-03-05 14:02:11 UTC`."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def dated(text: str) -> Markup:
    """The text, with dates that no narrow line breaks at their hyphens."""
    return Markup(DATE.sub(r'<span class="day">\g<0></span>', str(escape(text))))  # noqa: S704


def session(day: date | None) -> Markup:
    """`Fri 2012-06-29`, for the text of a page: an attribute takes no marks."""
    return dated(amounts.session(day))


def clock(at: datetime | None) -> str:
    """`14:02:11`."""
    return "" if at is None else f"{at:%H:%M:%S}"


def ago(at: datetime | None, now: datetime) -> str:
    """`12 s ago`, `5 min ago`, `3 h ago`, `4 days ago`."""
    if at is None:
        return ""
    return f"{amounts.roughly(now - at)} ago"


def money(amount: Decimal | float, currency: str) -> str:
    """`12,345.60 USD`."""
    return amounts.money(ticks.priced(amount, currency))


def change(amount: Decimal, currency: str) -> str:
    """`+12.50 USD`, `-1,034.00 USD`."""
    return amounts.change(ticks.priced(amount, currency))


def spent(amount: Decimal | None, *, is_demo: bool) -> str:
    """A cost as `usd` writes it, in the demo with `simulated` behind it."""
    return f"{usd(amount)} simulated" if is_demo and amount else usd(amount)


def usd(amount: Decimal | None) -> str:
    """`$0.0312`, from a dollar on `$9.67`; `$100` where it is whole; `unknown` without a price."""
    if amount is None:
        return amounts.UNKNOWN_COST
    if amount == int(amount):
        return f"${int(amount):,}"
    return f"${amounts.rounded(amount, HUNDREDTH):,f}" if amount >= 1 else f"${amount:,.4f}"


def share(part: Any, whole: Any) -> Decimal:
    """Percent of the whole, from 0 to 100; 0 of nothing. Not rounded: `percent` does that, once."""
    if not whole:
        return Decimal(0)
    return min(max(Decimal(part) / Decimal(whole) * 100, Decimal(0)), Decimal(100))


def by(items: Iterable[Any], name: str) -> Mapping[Any, Any]:
    """The items by one of their fields."""
    return {getattr(item, name): item for item in items}


def digits(amount: Decimal) -> str:
    """`1200`, `0.5`: a number as a form's field takes it."""
    return f"{amount.normalize():f}"


def capitalize_first(text: str) -> str:
    """The text with a capital letter at its beginning and the rest as it is."""
    return text[:1].upper() + text[1:]


def query(**chosen: object) -> str:
    """The chosen ones as an address's query."""
    return urlencode({name: str(value) for name, value in chosen.items() if value})


def json(value: JsonValue) -> str:
    """A recorded value as people read it."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def size(count: int) -> str:
    """`812 B`, `12.4 kB`, `1.1 GB`."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def points(fraction: float) -> str:
    """A difference of two percentages: `1.5 points`; `1 point`."""
    number = amounts.percent(fraction * 100).removesuffix("%")
    return f"{number} point" if number == "1" else f"{number} points"


def stopped(reason: str) -> str:
    """How a model's reply ended, in a sentence."""
    return STOPS.get(reason, f"The reply ended early: {reason.replace('_', ' ')}.")


STOPS: Mapping[str, str] = {
    "end": "The model finished its answer.",
    "tool_calls": "The model called tools.",
    "output_limit": "The reply was cut: it reached the limit of output tokens.",
    "context_limit": "The reply was cut: the model's context was full.",
    "refusal": "The model refused to answer.",
}

SPARK_WIDTH, SPARK_HEIGHT, SPARK_EDGE = 120, 28, 2


def spark(curve: Sequence[Decimal]) -> str:
    """The points of a small curve as SVG has them, as wide and high as the picture."""
    step = SPARK_WIDTH / max(len(curve) - 1, 1)
    return " ".join(f"{n * step:.1f},{_spark_at(curve, it):.1f}" for n, it in enumerate(curve))


def spark_level(curve: Sequence[Decimal]) -> str:
    """How high the curve began."""
    return f"{_spark_at(curve, curve[0]):.1f}"


def _spark_at(curve: Sequence[Decimal], value: Decimal) -> float:
    low, high = min(curve), max(curve)
    part = float((value - low) / (high - low)) if high > low else 0.5
    return SPARK_HEIGHT - SPARK_EDGE - part * (SPARK_HEIGHT - 2 * SPARK_EDGE)


def toned(amount: Any) -> str:
    """The class of a gain or a loss; `soft` of neither."""
    return "soft" if not amount else "gain" if amount > 0 else "loss"


def cell_class(cell: Cell, right: bool, wraps: bool = False) -> Markup:
    """The class attribute of a table's cell: its tone, its side, whether its column breaks lines, a
    date that no line breaks."""
    toned_as = CELL_CLASSES.get(cell.tone, "") if cell.tone else ""
    day = "day" if isinstance(cell.value, date) else ""
    sides = "right" if right else "", "wraps" if wraps else ""
    names = " ".join(filter(None, (*sides, toned_as, day)))
    return Markup(' class="{}"').format(names) if names else Markup()


CELL_CLASSES: Mapping[Tone, str] = {
    Tone.GOOD: "gain",
    Tone.BAD: "loss",
    Tone.WARN: "warn",
    Tone.QUIET: "soft",
}


def is_curve(value: object) -> bool:
    """Whether a cell's value is a line over time."""
    return isinstance(value, tuple)


def tempo(per_minute: float) -> float:
    """So many a minute, in full where there are many: 0, 0.4, 12."""
    return round(per_minute) if per_minute >= TEMPO_WHOLE else round(per_minute, 1) or 0


def facts_of(row: TickerRow, one: PipelineStory) -> Iterable[SectionFact]:
    """All that a page says of one ticker of a pipeline beside its tables."""
    yield from ticker_facts.named(row.reports, row.ticker)
    yield from ticker_facts.finding_facts(row)
    yield from ticker_facts.decided(row)
    yield from ticker_facts.not_bought(one.not_bought, row.ticker)
    yield from ticker_facts.result(one.results, row.ticker)
    yield from ticker_facts.outcome(one.outcomes, row.ticker)


def rules_table(found: Sequence[rules.RuleFinding]) -> Table:
    """The findings of the rules, all of them."""
    return rules.table(ShownItems(found), with_reasons=True)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "against": rules.against,
    "ago": ago,
    "answered_by": story.answered_by,
    "as_set": as_set,
    "capitalize_first": capitalize_first,
    "brief": results.brief,
    "cell_class": cell_class,
    "change": change,
    "clock": clock,
    "count": amounts.count,
    "dated": dated,
    "ended": ending.of_decision,
    "facts_of": facts_of,
    "result_cell": order_results.cell,
    "gain_percent": amounts.gain_percent,
    "halt": account.halted,
    "in_words": ending.in_words,
    "money": money,
    "percent": amounts.percent,
    "price": amounts.price,
    "quantity": amounts.quantity,
    "part": page.share,
    "nature": story.nature,
    "points": points,
    "ratio": page.ratio,
    "rules_table": rules_table,
    "unchecked_words": approval.unchecked,
    "session": session,
    "short": amounts.short,
    "signed": page.gain,
    "size": size,
    "stamp": stamp,
    "strategy_end": ending.of_strategy,
    "tempo": tempo,
    "thousands": amounts.thousands,
    "title_of": story.title,
    "tone": tone,
    "toned": toned,
    "plans": account.plans,
    "usd": usd,
    "waiting": account.waiting,
    "cut": amounts.cut,
    "plain": amounts.plain,
}
"""What templates may pipe a fact through."""
