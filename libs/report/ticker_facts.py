"""One ticker, stage by stage: who named it, what was found of it, what was decided. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from contracts.memory import DecisionOutcome
from contracts.not_bought import NotBought
from contracts.performance import OrderResult
from contracts.research import AssetView
from contracts.risk import Check
from contracts.sentiment import Candidate, Slot
from libs.facts import amounts
from libs.facts.market import indicator
from libs.report import approval, outcomes, results, rules, tickers, why_not
from libs.report.cited import TextPiece
from libs.report.reports import Reports
from libs.report.sections import Line, SectionFact, ShownItems, words
from libs.report.tones import Tone

SLOT_WORDS = {
    Slot.CONFIRMED: "first: proposed by two or more sources",
    Slot.KEPT: "kept by its source's quota",
    Slot.FREE: "took a place that no source needed",
}


def known(reports: Reports) -> Sequence[str]:
    """Every ticker that the pipeline's reports speak of."""
    digest = reports.digest
    candidates = digest.tickers if digest else ()
    dropped = [pick.ticker for pick in digest.dropped] if digest else []
    rows = [row.ticker for row in tickers.rows(reports)]
    return list(dict.fromkeys((*candidates, *dropped, *rows)))


def named(reports: Reports, ticker: str) -> Iterable[SectionFact]:
    """Who named it and why, or why it was dropped."""
    digest = reports.digest
    if digest is None:
        return
    for dropped in digest.dropped:
        if dropped.ticker == ticker:
            yield SectionFact("Dropped", words(dropped.reason))
    for candidate in digest.candidates:
        if candidate.ticker == ticker:
            yield from _candidate(candidate, reports)


def _candidate(candidate: Candidate, reports: Reports) -> Iterable[SectionFact]:
    op_id = reports.digest.op_id if reports.digest else None
    if who := ", ".join(filter(None, (candidate.name, candidate.sector))):
        yield SectionFact("Company", words(who))
    sources = ", ".join(
        f"{name} (score {candidate.scores[name]:.2f})" if name in candidate.scores else name
        for name in candidate.sources
    )
    mentions = amounts.count(candidate.mentions, "mention")
    yield SectionFact("Proposed by", words(f"{sources}; {mentions}"), op_id=op_id)
    if candidate.reasons:
        yield SectionFact("Surfaced by", words(tickers.reasons(candidate)))
    if candidate.slot is not None:
        yield SectionFact("Rank", words(SLOT_WORDS[candidate.slot]))
    heads = [
        f"{headline.published_at:%Y-%m-%d %H:%M} UTC  {headline.source}: {headline.title}"
        for headline in candidate.headlines
    ]
    asked = reports.digest.sources if reports.digest else ()
    silent = [source.silence for source in asked if candidate.ticker in source.unanswered]
    none = next(iter(silent), "the source has none up to as_of")
    yield SectionFact("Headlines", words(*(heads or [none])), None if heads else Tone.QUIET)


def finding_facts(row: tickers.TickerRow) -> Iterable[SectionFact]:
    """How it is spoken of, how its prices look, and what the analyst thinks of it."""
    if row.mood is not None:
        head = f"{row.mood.score:+.2f} of -1 to 1, confidence {row.mood.confidence:.2f}: "
        yield SectionFact("Sentiment", ShownItems([_headed(head, row.mood_words)]))
    elif row.unscored is not None:
        yield SectionFact("Sentiment", words(f"not scored: {row.unscored}"), Tone.QUIET)
    if row.signal is not None:
        head = f"{row.signal.signal.value} {row.signal.confidence:.2f}: "
        yield SectionFact("Quant", ShownItems([_headed(head, row.signal_words)]))
        yield _indicators(row)
    if row.finding is not None:
        yield from _finding(row)


def indicators(view: AssetView) -> Mapping[str, str]:
    """The values behind the quant's view, each with its unit, by the indicator's name."""
    return {
        name: indicator(name, value, view.currency or "")
        for name, value in view.technical_indicators.items()
    }


def _indicators(row: tickers.TickerRow) -> SectionFact:
    if row.signal is None or not row.signal.technical_indicators:
        return SectionFact("Indicators", words("none"), Tone.QUIET)
    quant, plan = row.reports.quant, row.reports.plan
    # The quant is given one result a planned ticker, in the plan's order.
    planned = plan is not None and row.ticker in plan.assets
    return SectionFact(
        "Indicators",
        values=indicators(row.signal),
        op_id=quant.op_id if quant else None,
        call=f"E{plan.assets.index(row.ticker)}" if plan and planned else "",
    )


def _finding(row: tickers.TickerRow) -> Iterable[SectionFact]:
    finding = row.finding
    if finding is None:
        return
    fundamental, technical = (
        amounts.UNKNOWN if score is None else f"{score:.1f}"
        for score in (row.fundamental, row.technical)
    )
    scores = (
        f"fundamental {fundamental}, technical {technical}, risk {finding.risk_score:.1f}"
        " (0 to 10, a high risk is bad) at "
        f"{amounts.price(finding.close)}"
    )
    measured = f"measured risk {finding.measured_risk:g}: {finding.measured_risk_reason}"
    lines = [*words(scores, measured).items, *row.finding_words]
    op_id = row.reports.research.op_id if row.reports.research else None
    yield SectionFact("Research", ShownItems(lines), op_id=op_id)
    if finding.catalyst:
        yield SectionFact("Catalyst", words(finding.catalyst), op_id=op_id)


def not_bought(causes: Sequence[NotBought], ticker: str) -> Iterable[SectionFact]:
    """Why it was not bought, where it was not."""
    if sentences := why_not.of_ticker(causes, ticker):
        yield SectionFact("Not bought", words(*sentences))


def decided(row: tickers.TickerRow) -> Iterable[SectionFact]:
    """The trader's pick of it with its reasons, and the reviewer's changes."""
    if row.pick is None and row.reports.picks is not None:
        yield SectionFact("Pick", words("no"), Tone.QUIET)
    if row.pick is not None:
        head = f"{row.wanted}, confidence {row.pick.confidence:.2f}: "
        yield SectionFact("Pick", ShownItems([_headed(head, row.pick_words)]))
    if row.review_words:
        yield SectionFact("Reviewer", ShownItems(row.review_words))


def executed(row: tickers.TickerRow) -> Iterable[SectionFact]:
    """The rules' findings on it, a person's answer, the decision and the order."""
    if row.checks:
        yield SectionFact("Rules", words(*map(_check, rules.worst_first(row.checks))))
    if row.validated is not None and row.reports.approval is not None:
        answer = approval.of_one(row.reports.approval, row.validated, row.decision)
        yield SectionFact("Approval", words(answer))
    if row.decision is not None:
        decision = row.decision
        yield SectionFact(
            "Decision",
            words(
                f"{decision.action.value} {amounts.quantity(decision.quantity)} shares at "
                f"{amounts.price(decision.price)}, "
                f"{amounts.percent(decision.allocation_pct)}"
            ),
        )
    if row.order is not None:
        yield SectionFact("Order", words(_order(row)))


def _check(check: Check) -> str:
    text = f"{check.rule}: {check.value}, limit {check.limit}; {check.reason}"
    return f"{check.outcome.value} {text}"


def _order(row: tickers.TickerRow) -> str:
    order, fill = row.order, row.fill
    if order is None:
        return ""
    text = f"{order.side.value} {amounts.quantity(order.quantity)}: {order.status.value}"
    if fill is not None:
        text += (
            f" at {amounts.price(fill.price)} on "
            f"{amounts.session(fill.session)}'s open, fee "
            f"{amounts.money(fill.fee)}"
        )
        text += f" ({amounts.foreign(fill.foreign)})" if fill.foreign else ""
    return f"{text}: {order.reason}" if order.reason else text


def result(listed: Sequence[OrderResult], ticker: str) -> Iterable[SectionFact]:
    """The results of its orders, in money."""
    own = [f"{results.order(it)}: {results.sentence(it)}" for it in listed if it.ticker == ticker]
    if own:
        yield SectionFact("Result", words(*own))


def outcome(past: Sequence[DecisionOutcome], ticker: str) -> Iterable[SectionFact]:
    """How the pick fared, as far as later cycles know."""
    if sentences := outcomes.of_ticker(past, ticker):
        yield SectionFact("Outcome", words(*sentences))


def _headed(head: str, pieces: Line) -> Line:
    return [TextPiece(head), *pieces]
