"""Counts: how many, and how many of them."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, DAY_CHANGE, VOLUME, Facts
from libs.quant.grounding.figures import MONTHS, Figure
from libs.quant.grounding.sentence import Sentence

NOUNS = re.compile(
    r"^\s(?:\w+\s)?(?:sessions|trading days|bars|headlines|stories|positions|holdings|analysts|"
    r"matches|reports)\b",
    re.IGNORECASE,
)
"""What is only ever counted."""
_OF_THE = re.compile(
    r"^\s+(?:(?:days |sessions )?out )?of (?:the\s|all\s|its\s)?(?=\w)", re.IGNORECASE
)
PART_MAX = 12
"""Things of which a text counts some."""
WHOLE_CHARS = 14
"""How far behind a part its whole stands: "three of the ten"."""
_OF_WHICH = re.compile(
    r"\b(?:\d+|none|one|two|three|four|five|six|seven|eight|nine|ten|most) (?:out )?of "
    r"(?:the |all |its |our )?(?:last |past )?$",
    re.IGNORECASE,
)
"""Before the whole that a part is counted of."""
_RESEARCHED = re.compile(
    r"\b(?:researched|examined|checked|looked at|read|priced|covered)\b", re.IGNORECASE
)
_DRAWN = re.compile(
    r"^\s(?:names|stocks|companies|assets|tickers|shares) (?:above|below|under|over)\b"
)
"""Behind a count, what it counts by."""
_MOVED = re.compile(
    r"^\s(?:rose|fell|gained|lost|(?:are|were|stand|trade|closed)\s(?:higher|lower|up|down))\b"
)
_LAST = re.compile(r"\b(?:last|past) $", re.IGNORECASE)
_CALENDAR = re.compile(r"\bcalendar\b", re.IGNORECASE)
_IN_A_WEEK = re.compile(
    r"\b(?:(?:within|inside) (?:a|one|the) week|(?:next|coming) (?:week|seven days)|week ahead|"
    r"(?:with)?in seven days)\b",
    re.IGNORECASE,
)
_HELD = re.compile(r"^[^.;,]{0,14}\b(?:positions|holdings|lines)\b")
_HEAD = re.compile(r"\b(?P<what>[a-z]+)(?:\s(?:by|per|in|on) \w+|\sso far)*:[^.;]*$", re.IGNORECASE)
_NEWS = re.compile(r"\bnews\b", re.IGNORECASE)
_PUBLISHED = re.compile(
    r"^\s(?:of (?:them|those|these) )?(?:(?:is|are|was|were) )?"
    rf"(?:published |printed |dated |from |in )+(?P<month>{'|'.join(MONTHS)})\b"
)
_LIST = {
    "headline": "items", "stories": "items", "news items": "items", "items": "items",
    "position": "positions", "holding": "positions", "open order": "open_orders",
    "reports are due": "entries", "reports due": "entries",
    "orders": "open_orders", "order": "open_orders",
    "match": "matches",
}  # fmt: skip
_TOOLS = {"prices": "get_stock_price", "histories": "get_stock_history"}
_COMPANIES = re.compile(
    r"\b(?:assets|companies|shares|stocks|tickers|names|of them|four|five)\b", re.IGNORECASE
)
_IN_A_ROW = re.compile(
    r"^\s(?:sessions?|days?|closes)?[^.,;]{0,12}\b(?:in a row|running|straight|"
    r"consecutive|successive)\b"
)
_OTHERS = re.compile(
    r"^\s(?:of (?:\w+ ){1,3})?(?:(?:consecutive|straight|successive) )?"
    r"(?:analysts|brokers|quarters|years|plants|jobs|customers)\b",
    re.IGNORECASE,
)
"""What the evidence never counts: only a headline can."""
_RUN = re.compile(
    r"^\s(?:consecutive|straight|successive)\s(?!(?:\w+ )?(?:sessions?|days?|clos|gain|loss|rise|"
    r"fall|advance|decline|drop|up|down|higher|lower|positive|negative|winning|losing))",
    re.IGNORECASE,
)
"""A streak of what no tool counts."""
_EACH_LAST = re.compile(
    r"\b(?:each|all|every one) of the (?:last|past|latest|final) $", re.IGNORECASE
)
_SESSION = re.compile(r"^\s(?:trading )?(?:sessions|days|closes)\b", re.IGNORECASE)
_HORIZON = re.compile(r"^\s(?:\w+ )?(?:sessions|days|bars) (?:after|following|before)\b")
_OF_WHOM = re.compile(r"^\s(?:out )?of (?:which|whom)\b", re.IGNORECASE)
_NAMES = re.compile(r"^\s(?:names|stocks|companies|assets|tickers|shares)\s(?!have|were given)")
_SESSIONS = re.compile(
    r"\b(?:sessions?|bars|trading days?|days? of (?:history|prices)|closes)\b", re.IGNORECASE
)


def counts(figure: Figure, said: Sentence) -> Iterator[int]:
    """What the evidence has as many of as the words next to a figure speak of."""
    right = said.after(figure, 45).lower()
    head = _HEAD.search(said.before(figure))
    if head and not re.match(r"\s\w", right):
        # "Headlines: ALFA 7, FOXT 6": what is counted stands at the head of the list.
        right = f" {head['what'].lower()}"
    if right.startswith(" entries") and said.has(_NEWS):
        right = " items"
    if dated := _PUBLISHED.match(right):
        yield _published(dated["month"], said.tickers(figure), said.facts)
        return
    part = _OF_THE.match(said.after(figure))
    if _OTHERS.match(right) or _RUN.match(right):
        return
    if _OF_WHICH.search(said.before(figure, 40)):
        yield from _sizes(figure, said, right, whole=True)
        return
    every = re.search(r"\ball\s$", said.before(figure, 5), re.IGNORECASE)
    keep = _property(figure, said) if _row_property(figure, said) is None else None
    named = part or every or _NAMES.match(right) or _MOVED.match(right)
    if keep is not None and named:
        held = said.facts.having("average_cost") if _HELD.search(right) else {}
        pool = held or said.facts.having(CLOSE)
        yield sum(1 for ticker in pool if keep(ticker))
        if every or part or _DRAWN.match(right):
            return
    listed = next((key for word, key in _LIST.items() if _counts(word, right)), None)
    if part and (listed or _OF_WHOM.match(right) or _COMPANIES.search(right[:25])):
        known = [] if listed else [*_having(figure, said)]
        # What no tool says of each ("one of the four items is an advertisement") is not refuted.
        yield from known or range(1, _whole(figure, said) + 1)
    elif listed is not None:
        yield from _listed(listed, said.tickers(figure) or (None,), said.facts)
        if said.about is None and not said.named:
            yield from _listed(listed, (None,), said.facts)
    elif part:
        yield from _having(figure, said)
    else:
        yield from _unlisted(figure, said, right)


def is_run(figure: Figure, said: Sentence) -> bool:
    """Whether a share is said to have moved one way on "each of the last four sessions"."""
    if not (_EACH_LAST.search(said.before(figure, 24)) and _SESSION.match(said.after(figure, 20))):
        return False
    return bool(_way(figure, said)) and any(
        len(said.facts.column(each, CLOSE)) > figure.value for each in said.tickers(figure)
    )


def _way(figure: Figure, said: Sentence) -> int:
    """Which way the clause before a figure points, where it speaks of no line and no volume."""
    clause = re.split(r"[,;]", said.text[: figure.start])[-1]
    volume = any(VOLUME in each.concepts for each in words.mentions(clause))
    if volume or words.SIDE.search(clause):
        return 0
    found = words.directions(words.OVER_TIME.sub("", clause))
    return found[-1][1] if found else 0


def _run(figure: Figure, said: Sentence) -> Iterator[int]:
    """Every number of last sessions that all moved the way that is said."""
    for owner in said.tickers(figure):
        closes = [value for _, value in said.facts.column(owner, CLOSE)]
        if len(closes) > 1 and (closes[-1] - closes[-2]) * _way(figure, said) > 0:
            yield from range(1, _streak(closes) + 1)


def is_refuted(figure: Figure, said: Sentence) -> bool:
    """Whether a count that only says which are meant ("the five holdings") is of no such group."""
    right = said.after(figure, 45).lower()
    if figure.value < 2 or _OTHERS.match(right) or _HORIZON.match(right):
        return False
    known = {*_sizes(figure, said, right)}
    named = {len({each.ticker for each in names}) for names in (said.named, said.named_before)}
    return bool(known) and figure.value not in known | named


def _sizes(figure: Figure, said: Sentence, right: str, *, whole: bool = False) -> Iterator[int]:
    """How many there are of a group; "the last five" are of any history."""
    facts, owners = said.facts, said.tickers(figure) or (None,)
    listed = next((key for word, key in _LIST.items() if _counts(word, right)), None)
    if listed is not None:
        yield from _listed(listed, owners, facts)
    elif _SESSIONS.search(right[:30]):
        of_last = _LAST.search(said.before(figure, 6))
        for length in _history(said, figure):
            yield from range(1, length + 1) if of_last else (length,)
    elif whole or _COMPANIES.search(right[:25]) or not re.match(r"\s\w", right):
        yield from _companies(said)
        yield len(facts.having("rsi_14"))
        if not re.match(r"\s\w", right):
            yield from _history(said, figure)


def _counts(word: str, right: str) -> bool:
    return bool(re.match(rf"^\W*(?:\w+\s){{0,3}}{word}", right))


def _unlisted(figure: Figure, said: Sentence, right: str) -> Iterator[int]:
    """Counts of answers, reports, sessions and companies."""
    facts = said.facts
    if is_run(figure, said):
        yield from _run(figure, said)
        return
    for word, tool in _TOOLS.items():
        if re.match(rf"^\W*(?:\w+\s)?{word}\b", right):
            yield len(set(facts.sources.get(tool, [])))
            return
    if re.match(r"^\s(?:\w+\s)?(?:reports?\b|names? report|companies report|results\b)", right):
        yield from _reporting(said)
    if _IN_A_ROW.search(right):
        for owner in said.tickers(figure):
            yield _streak([value for _, value in facts.column(owner, CLOSE)])
        return
    if _SESSIONS.search(right[:30]) or _SESSIONS.search(said.before(figure, 25)):
        yield from _history(said, figure)
        return
    group = re.search(r"\bof (?:(?:the|all|our|its) )?$", said.before(figure, 12))
    if (
        group
        or _COMPANIES.match(right.strip(" ,.;"))
        or (not figure.meant and _COMPANIES.search(right[:25]))
    ):
        yield from _companies(said)


def _history(said: Sentence, figure: Figure) -> Iterator[int]:
    for ticker in said.tickers(figure) or (None,):
        yield len(said.facts.rows.get(ticker or "", []))
        yield from (int(fact.value) for fact in said.facts.now(ticker, "bars"))


def _streak(closes: Sequence[float]) -> int:
    """How many of the last sessions closed in the direction of the last one."""
    moves = [two - one for one, two in itertools.pairwise(closes)]
    along = itertools.takewhile(lambda move: move * moves[-1] > 0, reversed(moves))
    return sum(1 for _ in along)


def _reporting(said: Sentence) -> Iterator[int]:
    """How many reports are due within a week, and how many are known of."""
    facts = said.facts
    due = {
        ticker: day
        for (ticker, name), days in facts.dates.items()
        if name == "report_next" and ticker is not None
        for day in days[:1]
    }
    if said.has(_CALENDAR):
        yield from (n for (_, name), n in facts.counts.items() if name == "entries")
        return
    if facts.as_of:
        yield sum(0 <= (day - facts.as_of).days <= 7 for day in due.values())
    if not said.has(_IN_A_WEEK):
        yield len(due)


def _listed(key: str, owners: tuple[str | None, ...], facts: Facts) -> Iterator[int]:
    own = [
        count for (ticker, name), count in facts.counts.items() if name == key and ticker in owners
    ]
    if key == "items" and not own:
        own = [
            n
            for (ticker, name), n in facts.counts.items()
            if name == "headlines" and ticker in owners
        ]
    every = [count for (_, name), count in facts.counts.items() if name == key]
    chosen = own if own and owners != (None,) else every
    if chosen:
        yield sum(chosen)


def _published(month: str, owners: tuple[str | None, ...], facts: Facts) -> int:
    """How many headlines became known in a month."""
    known = [each.known_on for each in facts.headlines if each.ticker in owners and each.known_on]
    return sum(1 for day in known if day.month == MONTHS.index(month) + 1)


def _companies(said: Sentence) -> Iterator[int]:
    facts = said.facts
    yield len({each.ticker for each in said.named})
    yield from {len(set(names)) for names in facts.sources.values()}
    yield from (
        count
        for (_, name), count in facts.counts.items()
        if name in {"assets", "tickers", "candidates", "positions"}
    )


def _having(figure: Figure, said: Sentence) -> Iterator[int]:
    """How many of a group have the property that the sentence names."""
    test = _row_property(figure, said)
    if test is not None:
        yield test
        return
    facts, text = said.facts, said.text
    if re.search(r"\bone sector\b|\bsame sector\b", text, re.IGNORECASE):
        sectors = [facts.sectors[ticker] for ticker in facts.sectors]
        yield max((sectors.count(each) for each in sectors), default=0)
        return
    if re.search(r"\breports?\b", text, re.IGNORECASE) and said.has(_IN_A_WEEK):
        yield from _reporting(said)
    if said.has(_RESEARCHED):
        yield len(facts.having(CLOSE))


def _points(figure: Figure, said: Sentence) -> int:
    """The first direction that is said behind a figure, else the sentence's."""
    found = words.directions(words.OVER_TIME.sub("", said.text[figure.end :]))
    return found[0][1] if found else 0


def _property(figure: Figure, said: Sentence) -> Callable[[str], bool] | None:
    facts, text = said.facts, said.text
    if re.search(r"\bprofitable\b|\bin profit\b|\bin the black\b", text, re.IGNORECASE):
        return lambda ticker: any(
            close.value > cost.value
            for close in facts.now(ticker, CLOSE)
            for cost in facts.now(ticker, "average_cost")
        )
    match = words.SIDE.search(text)
    bases = [
        c
        for m in said.mentions
        if match
        and not match["line"]
        and m.start >= match.end()
        and not m.concepts[0].endswith("_pct")
        for c in m.concepts
    ]
    if match and bases:
        up = bool(match["up"])

        def beyond(ticker: str) -> bool:
            pairs = [
                (a.value, b.value)
                for a in facts.now(ticker, CLOSE)[:1]
                for b in facts.now(ticker, bases[0])
            ]
            return any(a > b if up else a < b for a, b in pairs)

        return beyond
    bound, sign = _bound(text), _points(figure, said)
    concepts = [c for m in said.mentions for c in m.concepts]
    moves = [c for c in concepts if c.endswith("_pct") and not said.has(words.LAST)]
    moves = moves or [DAY_CHANGE]
    if bound:
        line, up = bound
        # "rose by more than 2%" is a bound on the size of the move.
        moved = sign if f"{line:g}%" in text and concepts[:1] != moves[:1] else 0
        name = moves[0] if moved else next(iter(concepts), CLOSE)
        return lambda ticker: any(
            (each.value * (moved or 1) > line) is up and each.value * moved >= 0
            for each in facts.now(ticker, name)
        )
    if sign:
        return lambda ticker: any(each.value * sign > 0 for each in facts.now(ticker, moves[0]))
    return None


def _bound(text: str) -> tuple[float, bool] | None:
    """The line that a text draws, and whether what it counts lies above it."""
    drawn = next((each for each in words.SIDE.finditer(text) if each["line"]), None)
    return (float(drawn["value"]), bool(drawn["up"])) if drawn else None


def _row_property(figure: Figure, said: Sentence) -> int | None:
    """How many sessions closed beyond a line, or higher than the one before."""
    if not said.has(re.compile(r"\bsessions\b|\bdays\b", re.IGNORECASE)):
        return None
    bound = _bound(said.text)
    for ticker in said.tickers(figure):
        closes = [value for _, value in said.facts.column(ticker, CLOSE)]
        if closes and bound:
            line, up = bound
            return sum(1 for each in closes if (each > line if up else each < line))
        sign = _points(figure, said) or said.direction(figure)
        if closes and sign:
            return sum(1 for one, two in itertools.pairwise(closes) if (two - one) * sign > 0)
    return None


def _whole(figure: Figure, said: Sentence) -> int:
    """The number right behind "of", of which a part is counted: no part is more."""
    behind = [each for each in said.figures if each.start >= figure.end][:1]
    for whole in behind:
        if whole.start - figure.end < WHOLE_CHARS and whole.unit in {"count", "number"}:
            return min(PART_MAX, int(whole.value))
    return PART_MAX
