"""Sound texts in other words: what was wrong put right, and words that change no claim."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

from tests.data.grounding.labelled import Claim, Statement, evidence
from tests.data.grounding.sums import OPERATIONS, given, is_rounded
from tests.data.grounding.written import NUMBER, as_written

SAME: Mapping[str, tuple[str, ...]] = {
    "rose": ("climbed", "gained", "advanced", "moved up", "ticked up"),
    "gained": ("climbed", "rose", "put on", "picked up"),
    "fell": ("dropped", "declined", "slid", "gave up", "came down"),
    "lost": ("shed", "dropped", "gave back"),
    "closed at": ("finished at", "ended at", "settled at"),
    "stands at": ("is at", "comes in at", "runs at", "sits at"),
    "is at": ("stands at", "comes to", "works out at"),
    "above": ("over", "north of"),
    "below": ("under", "beneath", "south of"),
    "about": ("roughly", "around", "some"),
    "highest": ("largest", "top"),
    "lowest": ("smallest",),
    "average": ("mean",),
    "the share": ("the stock", "the name"),
    "The share": ("The stock", "The name"),
    "trades at": ("changes hands at", "is quoted at"),
    "reports on": ("publishes on", "announces results on"),
    "is due on": ("is scheduled for", "comes on"),
    "on average": ("in the mean",),
    "beat": ("topped", "exceeded"),
    "still": ("nevertheless",),
    "only": ("just", "merely"),
    "while": ("whereas", "and"),
    "but": ("yet", "though"),
    "against": ("versus", "compared with"),
    "has risen": ("has climbed", "is up", "has gone up"),
    "dropped": ("fell", "retreated", "eased"),
    "jumped": ("surged", "leapt"),
    "added": ("gained", "put on"),
    "50-day average": ("50-day mean", "50-day line", "50-day MA", "50-day moving average"),
    "200-day average": ("200-day mean", "200-day line", "200-day MA", "200-day moving average"),
    "20-day average": ("20-day mean", "20-day line", "20-day moving average"),
    "upper band": ("upper Bollinger band", "top band"),
    "lower band": ("lower Bollinger band", "bottom band"),
    "market value": ("market capitalisation", "market cap"),
    "volume": ("trading volume", "share volume"),
    "Volume": ("Trading volume",),
    "net margin": ("profit margin", "net profit margin"),
    "Net margin": ("Profit margin",),
    "revenue": ("sales",),
    "estimate": ("forecast", "expectation"),
    "consensus": ("the Street", "the analysts' consensus"),
    "positions": ("holdings",),
    "headlines": ("news items", "stories"),
    "sessions": ("trading days",),
    "the day before": ("the previous day", "the prior session"),
    "RSI": ("relative strength index", "14-day RSI"),
    "average cost": ("cost basis", "entry price"),
    "upside": ("potential",),
    "roughly": ("some", "approximately"),
    "annualised": ("annual",),
    "worth": ("valued at",),
}
"""Words and others that say the same; not all of them are in the checker's tables."""
_WORDS = re.compile(r"\b(" + "|".join(map(re.escape, sorted(SAME, key=len, reverse=True))) + r")\b")
COMPANIES = {
    "AAPL": "Apple", "MSFT": "Microsoft", "GOOG": "Google", "ALFA": "Alfa",
    "ECHO": "Echo", "DLTA": "Delta", "CHRL": "Charlie", "FOXT": "Foxtrot", "BRVO": "Bravo",
}  # fmt: skip
_LIGHT = re.compile(r"\b(?:only|just|still|already|nearly|merely|now|again|currently|roughly) ")


def repaired(statement: Statement) -> Statement:
    """The statement with each wrong figure put right, where its sum and its form are known."""
    for place, claim in enumerate(statement.claims):
        text = right(statement, claim) if claim.label == "ungrounded" else None
        if text is not None:
            put = replace(claim, figure=text)
            value = _read(put, claim)
            statement = with_figure(statement, place, text, label="grounded", fault="", value=value)
    return statement


def right(statement: Statement, claim: Claim) -> str | None:
    """The figure as the evidence has it; None where that cannot be written in its form."""
    if claim.how not in OPERATIONS or claim.fault == "rounded_too_far":
        return None
    true = OPERATIONS[claim.how](given(statement.evidence, claim))
    said = float(str(claim.value))
    if true * said <= 0:
        return None
    text = as_written(claim, true)
    near = text is not None and len(re.sub(r"\D", "", text).strip("0")) > 1
    return text if near else None


def with_figure(statement: Statement, place: int, figure: str, **changes: object) -> Statement:
    """The statement with another text for one figure; the claims behind it move."""
    old = statement.claims[place]
    moved = len(figure) - len(old.figure)
    text = statement.text[: old.start] + figure + statement.text[old.end :]
    claims = (
        *statement.claims[:place],
        replace(old, figure=figure, **changes),  # type: ignore[arg-type]
        *(replace(each, start=each.start + moved) for each in statement.claims[place + 1 :]),
    )
    return replace(statement, text=text, claims=claims)


def with_words(statement: Statement, start: int, end: int, word: str) -> Statement | None:
    """The statement with other words at a place that no claim touches."""
    if any(each.start < end and start < each.end for each in statement.claims):
        return None
    moved = len(word) - (end - start)
    return replace(
        statement,
        text=statement.text[:start] + word + statement.text[end:],
        claims=tuple(
            replace(each, start=each.start + moved) if each.start >= end else each
            for each in statement.claims
        ),
    )


def reworded(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """The statement in other words, a few of each sort; no map of numbers is touched."""
    chance = Random(statement.id)
    for sort, make in _SORTS.items():
        every = list(make(statement, chance))
        for each in chance.sample(every, min(2, len(every))):
            yield sort, each


def _synonyms(statement: Statement, chance: Random) -> Iterator[Statement]:
    for match in _WORDS.finditer(statement.text):
        word = chance.choice(SAME[match.group()])
        if found := with_words(statement, match.start(), match.end(), word):
            yield found


def _lighter(statement: Statement, chance: Random) -> Iterator[Statement]:
    for match in _LIGHT.finditer(statement.text):
        if found := with_words(statement, match.start(), match.end(), ""):
            yield found


def _by_company(statement: Statement, chance: Random) -> Iterator[Statement]:
    tickers = {str(item.result.get("ticker")) for item in evidence(statement.evidence)}
    for ticker, company in COMPANIES.items():
        for old, new in ((ticker, company), (company, ticker)):
            changed = statement
            for match in reversed([*re.finditer(rf"\b{old}\b(?![-.])", statement.text)]):
                changed = with_words(changed, match.start(), match.end(), new) or changed
            if changed is not statement and ticker in tickers:
                yield changed


def _rounder(statement: Statement, chance: Random) -> Iterator[Statement]:
    """One figure with a place less, where the guide allows that."""
    for place, claim in enumerate(statement.claims):
        match = NUMBER.search(claim.figure)
        if claim.label != "grounded" or claim.how not in OPERATIONS or not match:
            continue
        whole, _, digits = match.group().partition(".")
        if len(digits) < 2 or len((whole + digits).replace(",", "").lstrip("0")) < 4:
            continue
        said = float(str(claim.value))
        true = OPERATIONS[claim.how](given(statement.evidence, claim))
        coarse = replace(
            claim, figure=claim.figure[: match.end() - 1] + claim.figure[match.end() :]
        )
        value = float(f"{abs(said):.{len(digits) - 1}f}") * (1 if said > 0 else -1)
        text = as_written(replace(coarse, value=_read(coarse, claim)), true)
        if text and is_rounded(true, value, claim.within * 10):
            yield with_figure(statement, place, text, value=value, within=claim.within * 10)


def _read(coarse: Claim, claim: Claim) -> float:
    old, new = (NUMBER.search(each.figure) for each in (claim, coarse))
    was, now = (float(each.group().replace(",", "")) if each else 0.0 for each in (old, new))
    return float(str(claim.value)) * now / was


_SORTS: Mapping[str, Callable[[Statement, Random], Iterator[Statement]]] = {
    "synonym": _synonyms,
    "lighter": _lighter,
    "company": _by_company,
    "rounder": _rounder,
}
