"""All agents in a row on the bundled prices: decisions, honesty, replay."""

from datetime import date
from decimal import Decimal

import pytest

from contracts.operation import CallKind
from contracts.research import QuantSignal
from libs.llm.errors import ProviderUnavailable, ProviderUnknown
from libs.llm.rules.rule_set import CONFIDENCE_MAX
from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.fakes.scripted_model import ScriptedProvider

CRASH, RALLY = date(2008, 10, 10), date(2012, 9, 21)


def test_at_the_default_date_there_is_something_to_buy_and_something_for_the_rules_to_cut(found):
    review, findings = found["review"], found["research"].tickers
    sector = {finding.ticker: finding.sector for finding in findings}
    assert [pick.ticker for pick in review.picks] == ["MSFT", "AAPL"]
    assert {sector[pick.ticker] for pick in review.picks} == {"Information Technology"}
    # What a sure buy might take: the rules leave each what its confidence earns.
    assert [pick.allocation_pct for pick in review.picks] == [Decimal("13.34"), Decimal("14.94")]
    assert all(pick.confidence < 1 for pick in review.picks)
    without = [finding.ticker for finding in findings if not finding.evidence]
    assert without == ["FB"]  # 30 sessions: no fact to speak by


async def test_in_a_crash_nothing_is_bought_and_the_reason_is_said(desk):
    desk.as_of = CRASH
    found = await desk.cycle()
    assert all(view.signal is QuantSignal.BEARISH for view in found["quant"].assets)
    assert found["picks"].picks == ()
    assert "nothing to buy" in found["picks"].market_summary


def test_a_ticker_with_a_short_history_gets_no_direction_and_no_confidence(found):
    facebook = next(view for view in found["quant"].assets if view.ticker == "FB")
    assert (facebook.signal, facebook.confidence) == (QuantSignal.UNCERTAIN, 0.0)
    assert "too short" in facebook.reasoning
    assert "FB" not in [pick.ticker for pick in found["picks"].picks]


def test_what_the_source_does_not_have_is_said_and_never_scored(found):
    reports = {report.name: report for report in found["digest"].sources}
    assert reports["screener"].ok
    assert reports["news"].error.code == "not_in_source"
    for view in found["sentiment"].tickers:
        assert (view.score, view.confidence) == (0.0, 0.0)
    for finding in found["research"].tickers:
        # The sample's filings are of 2009 and 2010: figures of two years ago score nothing.
        assert finding.fundamental_score is None
        old = "newest known period ended" in finding.summary
        assert old == (finding.ticker != "FB")
        none = "Fundamentals: source bokeh-sampledata has no figures of FB up to 2012-06-29."
        assert (none in finding.summary) == (finding.ticker == "FB")
        assert "has no news" in finding.news_summary


@pytest.mark.parametrize("as_of", [date(2012, 6, 29), CRASH, RALLY, date(2000, 3, 1)])
async def test_rules_are_labelled_and_their_confidence_is_capped(desk, as_of):
    desk.as_of = as_of
    found = await desk.cycle()
    texts = [
        found["plan"].objective,
        found["quant"].reasoning,
        found["research"].research_notes,
        found["review"].risk_notes,
        found["memory"].short_term_summary,
    ]
    assert all(text.startswith("rules: ") for text in texts)
    sure = [view.confidence for view in found["quant"].assets]
    sure += [pick.confidence for pick in found["picks"].picks]
    assert max(sure) <= CONFIDENCE_MAX


@pytest.mark.parametrize("as_of", [date(2012, 6, 29), RALLY])
async def test_a_recorded_cycle_replays_to_the_same_contracts_without_any_call(desk, as_of):
    desk.as_of = as_of
    first = await desk.cycle()
    recorded = {step: list(entries) for step, entries in desk.journals.items()}
    desk.market = _Dead()
    desk.providers = {"rules": _DeadRules()}
    assert await desk.cycle() == first
    assert desk.journals == recorded


async def test_two_runs_record_the_same_calls(desk):
    await desk.cycle()
    first, desk.journals = desk.journals, {}
    await desk.cycle()

    def calls(journals):
        return {
            step: [(entry.kind, entry.name, entry.request_sha256, entry.reply) for entry in entries]
            for step, entries in journals.items()
        }

    assert calls(first) == calls(desk.journals)


async def test_the_analyst_uses_all_nine_market_tools_in_one_round(desk):
    found = await desk.cycle()
    entries = desk.journals["researchtickers"]
    tools = {entry.name for entry in entries if entry.kind is CallKind.TOOL}
    assert len(tools) == 9
    assert found["research"].tool_calls_made == 37
    assert [entry.kind for entry in entries].count(CallKind.MODEL) == 3


async def test_every_tool_result_says_how_new_it_is_and_is_no_newer_than_as_of(desk):
    await desk.cycle()
    results = [
        entry.reply
        for entries in desk.journals.values()
        for entry in entries
        if entry.kind is CallKind.TOOL and "error" not in entry.reply
    ]
    assert len(results) > 20
    for result in results:
        assert result["as_of"] == "2012-06-29"
        assert (result["newest"] or "")[:10] <= "2012-06-29"


async def test_a_provider_that_the_desk_lacks_is_a_failure_that_names_what_it_has(desk):
    desk.pipeline = desk.pipeline.model_copy(update={"provider": "gpt"})
    with pytest.raises(ProviderUnknown, match="this desk has rules"):
        await desk.cycle()


class _Dead:
    """A market that must not be asked; only its label is known."""

    def __init__(self):
        true = ReplayMarket(ReplayStore())
        self.label, self.calendar = true.label, true.calendar  # code, which asks no source

    def __getattr__(self, name):
        raise AssertionError(f"the market was asked: {name}")


class _DeadRules(ScriptedProvider):
    """A provider named as the rules that must not be called."""

    def __init__(self):
        super().__init__([], name="rules")

    def model_for(self, stage, size):
        return "rules"

    async def complete(self, request):
        raise ProviderUnavailable(f"a model was called for {request.agent}")


REASONED = ("sentiment", "quant", "research", "picks", "review")


@pytest.mark.parametrize("as_of", [date(2012, 6, 29), CRASH])
async def test_every_figure_of_the_rules_stands_in_its_text_with_a_source(desk, as_of):
    desk.as_of = as_of
    found = await desk.cycle()
    assert [found[name].loose for name in REASONED] == [()] * len(REASONED)
    assert _in_place(found) > 40


def _in_place(found):
    """How many figures there are, each at its place and from facts with a source."""
    figures = 0
    for report in (found[name] for name in REASONED):
        for figure in report.figures:
            text = report.model_dump(mode="json")
            for step in figure.field.split("."):
                text = text[int(step)] if isinstance(text, list) else text[step]
            assert text[figure.start :].startswith(figure.text)
            assert figure.facts
            assert figure.source
            figures += 1
    return figures


async def test_every_number_of_the_quant_is_a_figure_with_its_fact_and_tool_result(desk):
    found = await desk.cycle()
    quant = found["quant"]
    texts = {f"assets.{place}.reasoning": each for place, each in enumerate(quant.assets)}
    for figure in quant.figures:
        view = texts[figure.field]
        assert view.reasoning[figure.start :].startswith(figure.text)
        assert all(name.startswith(f"{view.ticker}.") for name in figure.facts)
        assert (figure.call[0], figure.known, figure.source) == (
            "E",
            "2012-06-29",
            "bokeh-sampledata",
        )
    apple = next(each for each in quant.assets if each.ticker == "AAPL")
    assert apple.reasoning.startswith("For: close 584.00 USD, ")
    assert "above 50-day average 571.96 USD" in apple.reasoning


async def test_every_figure_of_the_rules_on_news_and_fundamentals_has_a_source(fixture_desk):
    found = await fixture_desk.cycle()
    assert [found[name].loose for name in REASONED] == [()] * len(REASONED)
    assert _in_place(found) > 40


async def test_every_quotation_of_the_rules_is_a_headline_with_its_fact_and_publisher(fixture_desk):
    found = await fixture_desk.cycle()
    sentiment, titles = found["sentiment"], {}
    for each in found["digest"].candidates:
        titles |= {f'"{line.title}"': (each.ticker, line) for line in each.headlines}
    for figure in sentiment.figures:
        view = sentiment.tickers[int(figure.field.split(".")[1])]
        assert figure.field.endswith(".rationale")
        assert view.rationale[figure.start :].startswith(figure.text)
        ticker, headline = titles[figure.text]
        (name,) = figure.facts
        assert name.startswith(f"{ticker}.headline@{headline.published_at.date()}.")
        assert (ticker, figure.source) == (view.ticker, headline.source)
        assert (figure.known, figure.call) == (headline.published_at.isoformat(), "")
    quoted = {quote for view in sentiment.tickers for quote in view.key_quotes}
    assert {f'"{quote}"' for quote in quoted} == {figure.text for figure in sentiment.figures}
    assert len(quoted) > 3
    assert (sentiment.loose, sentiment.notes[:7]) == ((), "rules: ")
