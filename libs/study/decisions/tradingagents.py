"""The decision log of TradingAgents, versions 0.2.4 to 0.4.0: `trading_memory.md`.

Read from its source (TauricResearch/TradingAgents, tradingagents/agents/utils/memory.py). Entries
end with a line `<!-- ENTRY_END -->`. The first line of an entry is its tag:

    [2026-01-10 | NVDA | Buy | pending]
    [2026-01-10 | NVDA | Buy | +5.0% | +2.0% | 5d]
    [2026-01-10 | NVDA | Buy | +5.0% | +2.0% | 5d | resolved:2026-01-16]      since 0.4.0

with the date of the analysis, the ticker, the rating, and later what came of it. Below stand the
prose of the decision and of a reflection. Only date, ticker and rating are read: the outcome was
not known when it was decided.
"""

import re
from datetime import date
from math import inf
from pathlib import Path
from typing import Final

from libs.files.finding import BadFile, FileFinding, bad
from libs.runtime.errors import few
from libs.study.decisions.stated import (
    ROWS_MAX,
    DecisionForm,
    NoTicker,
    StatedDecision,
    StatedFile,
    ticker_of,
)

VERSIONS: Final = "TradingAgents 0.2.4 to 0.4.0"
END: Final = "<!-- ENTRY_END -->"
RATINGS: Final = {
    "Buy": (1.0, inf),
    "Overweight": (0.5, inf),
    "Hold": (-inf, inf),
    "Underweight": (-inf, 0.5),
    "Sell": (-inf, 0.0),
}
"""The position that a rating leaves, as parts of the ticker's slot: at least, at most."""
RATINGS_IN_WORDS: Final = (
    "each ticker has an equal slot of the money: Buy fills it, Overweight fills it to a half at "
    "least, Hold leaves it, Underweight cuts it to a half at most, Sell empties it"
)
NO_RATING: Final = "REVIEW"
"""Written since 0.4.0 where no rating could be read; before that such a decision says Hold."""
_TAG: Final = re.compile(r"\[([^|\]]{1,40})\|([^|\]]{1,40})\|([^|\]]{1,40})\|([^\]]{1,200})\]")
_OUTCOME: Final = re.compile(
    r"pending|[+-](\d+\.\d|nan|inf)% \| [+-](\d+\.\d|nan|inf)% \| \d+d"
    r"(?P<since_0_4> \| resolved:\d{4}-\d{2}-\d{2})?"
)
_FULL_STATES: Final = re.compile(rb'"(company_of_interest|final_trade_decision)"')


def is_log(text: bytes) -> bool:
    """Whether a text is such a log: its first line with words is a tag."""
    first = text.lstrip()[:500].partition(b"\n")[0].decode("utf-8", "ignore")
    return _TAG.fullmatch(first.strip()) is not None


def refuse_full_states(path: Path, text: bytes) -> None:
    """Raise BadFile for the other log of TradingAgents, JSON of all that was said in a run."""
    if text.lstrip()[:1] == b"{" and _FULL_STATES.search(text):
        what = "TradingAgents' full_states_log: its decision is prose, without a rating of its own"
        remedy = f"give trading_memory.md, which {VERSIONS} write (~/.tradingagents/memory)"
        raise bad(path, None, what, remedy)


def read_log(path: Path, text: bytes) -> StatedFile:
    """The decisions of a log. Raises BadFile for one with too many."""
    read = StatedFile(DecisionForm.RATINGS, VERSIONS)
    read.notes.append(RATINGS_IN_WORDS)
    seen: set[tuple[date, str]] = set()
    again: list[int] = []
    reviews: list[int] = []
    is_at_tag = True
    for number, line in enumerate(text.decode().split("\n"), 1):
        words = line.strip()
        if words == END:
            is_at_tag = True
        if not is_at_tag or not words or words == END:
            continue
        is_at_tag = False
        if len(read.decisions) >= ROWS_MAX:
            raise bad(path, number, f"more than {ROWS_MAX:,} entries, the limit", "split the log")
        try:
            decision, rating, is_0_4 = _entry(path, number, words)
        except BadFile as error:
            read.refuse(error.finding)
            continue
        if is_0_4:
            read.written_by = "TradingAgents 0.4.0"
        if rating == NO_RATING:
            reviews.append(number)
        if (decision.at, decision.ticker) in seen:
            again.append(number)
            continue
        seen.add((decision.at, decision.ticker))
        read.decisions.append(decision)
    if again:
        read.notes.append(
            f"{_lines(again)}: the same ticker and date once more; the first entry counts, since a "
            "later one may have been written with the outcome in the memory"
        )
    if reviews:
        read.notes.append(f"{_lines(reviews)}: {NO_RATING}, no rating could be read; as Hold")
    return read


def _entry(path: Path, number: int, words: str) -> tuple[StatedDecision, str, bool]:
    """The decision of a tag, its rating, and whether 0.4.0 or a later one wrote it. Raises
    BadFile."""
    tag = _TAG.fullmatch(words)
    if tag is None:
        what = f"an entry that does not begin with its tag, but with {words[:40]!r}"
        raise bad(path, number, what, "write [date | ticker | rating | pending], or remove it")
    day, name, rating, rest = (part.strip() for part in tag.groups())
    outcome = _OUTCOME.fullmatch(rest)
    if outcome is None:
        what = f"the tag ends with {rest[:60]!r}, which {VERSIONS} do not write"
        raise bad(path, number, what, "another version or a copy of TradingAgents: use a CSV")
    if rating not in {*RATINGS, NO_RATING}:
        what = "none of " + ", ".join(RATINGS)
        raise BadFile(FileFinding(path.name, what, "correct it", number, "rating", rating))
    try:
        low, high = RATINGS.get(rating, (-inf, inf))
        decision = StatedDecision(number, date.fromisoformat(day), ticker_of(name), low, high)
    except NoTicker as error:
        raise BadFile(
            FileFinding(path.name, str(error), "correct it", number, "ticker", name)
        ) from None
    except ValueError:
        what, remedy = "not a date", "write it as YYYY-MM-DD"
        raise BadFile(FileFinding(path.name, what, remedy, number, "date", day)) from None
    return decision, rating, outcome["since_0_4"] is not None


def _lines(numbers: list[int]) -> str:
    """`line 4`, `lines 4, 9, 12 and 7 more`."""
    return f"line{'s' if len(numbers) > 1 else ''} {few([*map(str, numbers)], most=3)}"
