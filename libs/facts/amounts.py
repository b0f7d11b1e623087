"""Numbers and times as people read them. Pure."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from pydantic import ValidationError

from contracts.types import Foreign, Money, Usage
from libs.quant import ticks
from libs.quant.ticks import priced
from libs.runtime import ids

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0
SECONDS_SHOWN = 90
MINUTES_SHOWN = 90
HOURS_SHOWN = 36
"""Up to so many a rough span is told in that unit."""
THOUSAND = 1000
UNKNOWN = "-"
"""What stands where a number is not known: never a 0."""

_CENT, _TENTH = Decimal("0.01"), Decimal("0.1")
TENTHS_BELOW = 10
UNKNOWN_COST = "unknown"
"""The cost of calls of a model whose price nobody set."""


def rounded(number: Decimal | float, step: Decimal) -> Decimal:
    """To the nearest multiple of `step` (a power of ten), halves away from zero.

    The only rounding of what is shown: a float goes by its shortest decimal, so that 26.615 is
    26.62 whichever of the two it came as.
    """
    exact = number if isinstance(number, Decimal) else Decimal(str(number))
    # Plus nothing: what rounds to zero has no sign.
    return exact.quantize(step, ROUND_HALF_UP) + 0


def money(of: Money, column: str = "") -> str:
    """A sum to the cent, with its currency: `12,345.60 USD`.

    In a column whose heading names the currency `column`, only sums in another one carry theirs.
    """
    return _with_currency(f"{rounded(of.amount, _CENT):,f}", of, column)


def change(of: Money, column: str = "") -> str:
    """A gain or a loss, as `money`: `+12.50 USD`, `-1,034.00 USD`."""
    return _with_currency(f"{rounded(of.amount, _CENT):+,f}", of, column)


def _with_currency(text: str, of: Money, column: str) -> str:
    return text if of.currency == column else f"{text} {of.currency}"


def price(of: Money, column: str = "") -> str:
    """A price on its tick, with its currency: `552.69 GBX`, `0.000493 USD`.

    In a column whose heading names the currency `column`, only prices in another one carry theirs.
    """
    return ticks.digits(of) if of.currency == column else ticks.quoted(of)


def recorded(value: object) -> str | None:
    """The price that recorded JSON holds as `{"amount": "763.81", "currency": "GBX"}`, in words:
    `763.81 GBX`. None where the value is something else."""
    if not isinstance(value, Mapping) or value.keys() != {"amount", "currency"}:
        return None
    try:
        return price(Money.model_validate(value))
    except ValidationError:
        return None


def figure(number: Decimal | float) -> str:
    """A recorded number whose unit is not known, as fine as a price of its size: `12,345.60`."""
    return ticks.digits(priced(number, ""))


def measured(number: float) -> str:
    """A recorded measure of any unit: three decimal places, and below 1 three digits."""
    text = f"{number:,.3f}" if abs(number) >= 1 else f"{Decimal(f'{number:.3g}'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def foreign(traded: Foreign) -> str:
    """`127.29 EUR at EURUSD 1.1234 of Fri 2024-03-15`."""
    rate = traded.rate
    pair = f"{rate.currency}{rate.into} {rate.rate.normalize():f} of {session(rate.on)}"
    return f"{ticks.quoted(traded.price)} at {pair}"


def quantity(amount: Decimal) -> str:
    """`120`, and `0.5` where shares are not whole."""
    return f"{amount.normalize():,f}"


def percent(amount: Decimal | float) -> str:
    """`25%`, `33.3%`: a share, a limit, a fall."""
    return f"{rounded(amount, _TENTH):,f}".removesuffix(".0") + "%"


def gain_percent(amount: Decimal | float) -> str:
    """`+4.93%`, `-0.20%`: a return."""
    return f"{rounded(amount, _CENT):+,f}%"


def paid(cost_usd: Decimal | None, places: int = 4, *, sign: str = "") -> str:
    """`0.0312`, with `sign` `$0.0312`: the cost of model calls; `unknown` where a price is."""
    return UNKNOWN_COST if cost_usd is None else f"{sign}{cost_usd:,.{places}f}"


def cost(tokens: int, cost_usd: Decimal | None) -> str:
    """`12,400 tokens · $0.0312`, or `· cost unknown`; short where nothing was asked."""
    if not tokens and cost_usd == 0:
        return "0 tokens · $0"
    dollars = "cost unknown" if cost_usd is None else paid(cost_usd, sign="$")
    return f"{tokens:,} tokens · {dollars}"


def spent(tokens: int, cost_usd: Decimal | None) -> tuple[str, str]:
    """`12.4k` and `0.0312`, for two columns; blank where nothing was asked."""
    return (thousands(tokens), paid(cost_usd)) if tokens or cost_usd else ("", "")


def sorts(usage: Usage) -> str:
    """`1,200 in · 80 out · 4,000 cache read · 300 cache write`, without what there was none of."""
    parts = (
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "cache read"),
        (usage.cache_write_tokens, "cache write"),
        (usage.unsorted_tokens, "unanswered"),
    )
    return " · ".join(f"{tokens:,} {name}" for tokens, name in parts if tokens)


def speed(tokens_s: float) -> str:
    """`1,240 tokens/s`, and below 10 `3.4 tokens/s`."""
    return f"{tokens_s:,.{0 if tokens_s >= TENTHS_BELOW else 1}f} tokens/s"


def output_speed(usage: Usage, duration_ms: float) -> str:
    """The speed at which a reply was written; empty where no tokens were counted."""
    if not usage.output_tokens or duration_ms <= 0:
        return ""
    return speed(usage.output_tokens / duration_ms * 1000)


def sorts_and_cost(usage: Usage) -> str:
    """`1,200 in · 80 out · $0.0312`."""
    return f"{sorts(usage)} · {paid(usage.cost_usd, sign='$')}"


def thousands(number: int) -> str:
    """`820`, `12.3k`, `4.56M`, `20M`: where columns are narrow."""
    if number < THOUSAND:
        return str(number)
    if number % (THOUSAND * THOUSAND) == 0:
        return f"{number // THOUSAND // THOUSAND}M"
    if number < THOUSAND * THOUSAND:
        return f"{number / THOUSAND:.1f}k"
    return f"{number / THOUSAND / THOUSAND:.2f}M"


def duration(seconds: float) -> str:
    """`4 ms`, `1.84 s`, `2 min 05 s`, `3 h 10 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE_S:
        return f"{seconds:.2f} s"
    if seconds < HOUR_S:
        return f"{int(seconds // 60)} min {int(seconds % 60):02} s"
    return f"{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // 60):02} min"


def roughly(span: timedelta) -> str:
    """`12 s`, `5 min`, `3 h`, `4 days`: where nobody counts."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < SECONDS_SHOWN:
        return f"{seconds} s"
    if seconds < MINUTES_SHOWN * MINUTE_S:
        return f"{round(seconds / MINUTE_S)} min"
    if seconds < HOURS_SHOWN * HOUR_S:
        return f"{round(seconds / HOUR_S)} h"
    return f"{round(seconds / DAY_S)} days"


def between(start: datetime | None, end: datetime | None) -> str:
    """The time from start to end; empty where one is not known."""
    if start is None or end is None:
        return ""
    return duration(max((end - start) / timedelta(seconds=1), 0.0))


def session(day: date | None) -> str:
    """`Fri 2012-06-29`."""
    return "" if day is None else f"{day:%a %Y-%m-%d}"


def short(identifier: object) -> str:
    """The first digits of an id: enough to find it again."""
    return str(identifier)[: ids.ID_CHARS_SHOWN]


def plain(text: str) -> str:
    """Without characters that could move the cursor, hide text or turn its direction.

    News, models and strangers' messages are untrusted: a terminal obeys escape codes.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def cut(text: str, chars_max: int) -> str:
    """On one line, with … where it was longer; cut between words where there is such a place."""
    line = " ".join(plain(text).split())
    if len(line) <= chars_max:
        return line
    start = line[: chars_max - 1]
    blank = start.rfind(" ")
    if line[chars_max - 1] != " " and blank > chars_max // 2:
        start = start[:blank]
    return start.rstrip(" ,;:") + "…"


def count(number: int, one: str, many: str = "") -> str:
    """`1 call`, `3 calls`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
