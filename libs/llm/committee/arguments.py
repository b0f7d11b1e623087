"""The committee's arguments: reasons that it draws from facts, and the words beside them. Pure."""

from collections.abc import Sequence

from contracts.reasons import ReasonDraft, Speaks
from contracts.research import ResearchFinding
from libs.llm.committee import lines
from libs.llm.committee.lines import chosen
from libs.llm.rules.lexicon import tone
from libs.llm.rules.rule_set import EvidenceIndex


def of_news(
    ticker: str, evidence: EvidenceIndex, day: str, *, sale: bool = False
) -> tuple[ReasonDraft, ...]:
    """The headline that says the most; bad news speaks for a sale."""
    toned = [(item, tone(item.title)) for item in evidence.headlines(ticker)]
    weightiest = max(toned, key=lambda pair: abs(pair[1]), default=None)
    if weightiest is None or not weightiest[1]:
        return ()
    item, value = weightiest
    speaks = side(-value if sale else value)
    words = chosen(lines.NEWS[side(value)], day, item.name)
    return (ReasonDraft(fact=item.name, speaks=speaks, why=words),)


def of_trend(ticker: str, evidence: EvidenceIndex, *, rise: Speaks) -> tuple[ReasonDraft, ...]:
    """Where the close is of its average, and how it has moved; a `rise` speaks so."""
    fall = Speaks.AGAINST if rise is Speaks.FOR else Speaks.FOR
    close, average = evidence.number(ticker, "close"), evidence.number(ticker, "sma_200")
    moved = evidence.number(ticker, "change_63d_pct")
    reasons: tuple[ReasonDraft, ...] = ()
    if close is not None and average is not None:
        speaks = rise if close > average else fall
        reasons += evidence.reason(ticker, "close", beside="sma_200", speaks=speaks)
    if moved:
        speaks = rise if moved > 0 else fall
        reasons += evidence.reason(ticker, "change_63d_pct", speaks=speaks)
    return reasons


def of_figures(finding: ResearchFinding, evidence: EvidenceIndex) -> tuple[ReasonDraft, ...]:
    """The score of its figures, where there are any."""
    known = finding.fundamental_score
    if known is None:
        return ()
    return evidence.reason(finding.ticker, "fundamental_score", speaks=side(known - 5.0))


def spoken(
    reasons: Sequence[ReasonDraft], ticker: str, day: str, *, sale: bool = False
) -> tuple[ReasonDraft, ...]:
    """The reasons with a few words where they have none; what speaks for a sale is bad news."""
    return tuple(
        reason
        if reason.why
        else reason.model_copy(
            update={
                "why": lines.why(_quantity(reason, ticker), _of_share(reason, sale), ticker, day)
            }
        )
        for reason in reasons
    )


def _of_share(reason: ReasonDraft, sale: bool) -> Speaks:
    """Which way a reason speaks of the share itself."""
    if not sale:
        return reason.speaks
    return Speaks.AGAINST if reason.speaks is Speaks.FOR else Speaks.FOR


def _quantity(reason: ReasonDraft, ticker: str) -> str:
    return reason.fact.removeprefix(f"{ticker}.").partition("@")[0]


def side(value: float) -> Speaks:
    """Which way a number speaks."""
    return Speaks.FOR if value >= 0 else Speaks.AGAINST
