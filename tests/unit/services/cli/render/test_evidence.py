"""The evidence of a ticker and of a stage, as words, and as exact records."""

from collections.abc import Iterable, Sequence

import pytest
from rich.console import RenderableType

from contracts.cycle_query import CycleView, Recording
from contracts.operation import OperationView
from libs.report.reports import Reports
from libs.report.tickers import rows
from services.cli.render import evidence, values
from services.cli.shell.problem import CliProblem, ExitCode
from tests.unit.services.cli.screens import printed


def _of_ticker(view: CycleView, records: Sequence[Recording], ticker: str, width: int = 100) -> str:
    found = evidence.of_ticker(view, records, ticker)
    return _words(evidence.ticker_screen(view, found, ticker), width)


def _words(screen: Iterable[RenderableType], width: int = 100) -> str:
    return " ".join(printed(screen, width).split())


def test_a_tickers_evidence_holds_what_every_stage_said_of_it(
    cycle_view: CycleView, records: list[Recording]
) -> None:
    text = _of_ticker(cycle_view, records, "AAPL")

    for said in (
        "2012-06-28 14:00 UTC a paper: it rises",
        '+0.50 of -1 to 1, confidence 0.40: For: headline "it rises" of 2012-06-28 (up 9).',
        "bullish 0.40: votes",
        'Sources "it rises" sentiment AAPL.headline@2012-06-28.ghijklmn; a paper, 2012-06-28T14:00',
        "rsi_14 55.58",
        "technical 8.0, risk 3.8",
        "buy 60%, confidence 0.50: AAPL rises",
        "cut position_size: 60%, limit 40%; because",
        "kept research_evidence: a finding, limit one; because",
        "buy 68 shares at 584.00 USD, 40%",
        "filled at 585.03 USD on Mon 2012-07-02's open, fee 19.89 USD",
    ):
        assert said in text, said


def test_why_a_ticker_is_spoken_of_so_is_in_pieces_that_say_where_they_are_from(
    cycle_view: CycleView,
) -> None:
    row = next(each for each in rows(Reports.of(cycle_view.pipelines[0])) if each.ticker == "AAPL")
    _, quote, _, loose, _ = row.mood_words
    assert (quote.text, quote.loose) == ('"it rises"', False)
    assert quote.source == ("AAPL.headline@2012-06-28.ghijklmn; a paper, 2012-06-28T14:00:00+00:00")
    assert (loose.text, loose.loose, loose.source) == ("9", True, "not from evidence")


def test_a_tickers_calls_are_those_that_asked_about_it(
    cycle_view: CycleView, records: list[Recording]
) -> None:
    text = _of_ticker(cycle_view, records, "AAPL")

    assert "quant 0 get_technical_indicators tool ticker AAPL 3 ms" in text
    assert "values (rsi_14 55.5816), source made-up prices" in text
    assert "mentions (ticker AAPL, score 1.0)" in text
    assert "IBM" not in text
    assert "claude:some-model" not in text


def test_a_dropped_ticker_says_why(cycle_view: CycleView, records: list[Recording]) -> None:
    text = _of_ticker(cycle_view, records, "XYZ")

    assert "Dropped fewer than 20 sessions of prices" in text
    assert "Calls that asked about it none" in text


def test_a_ticker_that_the_cycle_never_met_is_not_found_and_the_others_are_named(
    cycle_view: CycleView, records: list[Recording]
) -> None:
    with pytest.raises(CliProblem) as problem:
        evidence.of_ticker(cycle_view, records, "TSLA")

    assert problem.value.code is ExitCode.NOT_FOUND
    assert "AAPL GOOG IBM XYZ" in problem.value.hint


def test_a_cycle_that_names_no_ticker_is_shown_whole_instead(cycle_view: CycleView) -> None:
    nothing = cycle_view.pipelines[0].model_copy(update={"contracts": {}})
    view = cycle_view.model_copy(update={"kind": "strategy", "pipelines": (nothing,)})
    with pytest.raises(CliProblem) as problem:
        evidence.of_ticker(view, (), "AAPL")
    assert problem.value.hint == f"deskbus cycle show {str(view.cycle_id)[:8]}"

    screen = evidence.ticker_screen(view, (), "AAPL")
    assert _words(screen).startswith("AAPL strategy of Fri 2012-06-29")


def test_a_mistyped_ticker_is_told_with_the_one_that_was_meant(
    cycle_view: CycleView, records: list[Recording]
) -> None:
    with pytest.raises(CliProblem, match=r"^APPL is not in this cycle; did you mean AAPL"):
        evidence.of_ticker(cycle_view, records, "APPL")


def test_a_mistyped_stage_is_told_with_the_one_that_was_meant(
    nodes: list[OperationView], records: list[Recording]
) -> None:
    with pytest.raises(CliProblem, match=r"^this cycle has no stage .quants.; did you mean quant"):
        evidence.of_stage(nodes, records, "quants")


def test_the_records_of_a_ticker_are_exact(cycle_view: CycleView, records: list[Recording]) -> None:
    digest, quant = evidence.of_ticker(cycle_view, records, "IBM")

    assert digest == records[0]
    assert quant.journal == (records[1].journal[1],)
    assert quant.result == records[1].result


@pytest.mark.parametrize("stage", ["quant", "analyzing"])
def test_a_stage_shows_its_answer_its_indicators_and_its_calls(
    stage: str, nodes: list[OperationView], records: list[Recording]
) -> None:
    text = _words(evidence.stage_screen(nodes, evidence.of_stage(nodes, records, stage), 100))

    assert "✓ completed 800 ms 12,400 tokens · $0.0312" in text
    assert "reasoning two of three rise" in text
    assert "indicator AAPL GOOG IBM" in text
    assert "sma_200 486.60 486.60 486.60" in text
    assert "Calls (3)" in text
    assert "AAPL rises, so I say bullish" in text


def test_a_stage_that_was_not_reached_is_not_found_and_the_others_are_named(
    nodes: list[OperationView], records: list[Recording]
) -> None:
    with pytest.raises(CliProblem) as problem:
        evidence.of_stage(nodes, records, "execute")

    assert problem.value.code is ExitCode.NOT_FOUND
    assert "digest quant" in problem.value.hint


@pytest.mark.parametrize("width", [80, 100, 118])
def test_nothing_is_cut_and_no_line_is_too_long(
    width: int, cycle_view: CycleView, nodes: list[OperationView], records: list[Recording]
) -> None:
    ticker = evidence.ticker_screen(cycle_view, records, "AAPL")
    stage = evidence.stage_screen(nodes, records, width)
    lines = printed([*ticker, *stage], width).splitlines()

    assert max(map(len, lines)) <= width
    assert not any(line.endswith("…") for line in lines)


def test_long_lists_are_counted_and_shown_from_both_ends() -> None:
    assert values.flat([[1, 2]]) == "(1 2)"
    rows = [[n] for n in range(63)]
    assert values.flat({"rows": rows}) == "rows 63 items: (0); (1) … (61); (62)"


def test_recorded_text_cannot_move_the_cursor() -> None:
    assert "\x1b" not in values.flat({"title": "buy\x1b[2J now"})
