"""The check that follows every answer: what is given, what is marked, what a mark takes away."""

from datetime import date

from contracts.grounding import MARKS_MAX, MarkKind
from contracts.types import Value
from libs.llm.grounding import CLAIMS_MAX, Grounder, ground
from libs.llm.prompt import Task
from libs.llm.provider import Evidence

DAY = "2012-06-29"
INDICATORS = {"as_of": DAY, "ticker": "AAPL", "values": {"close": 584.0, "rsi_14": 55.58}}
RESULT = Evidence(id="E0", tool="get_technical_indicators", result=INDICATORS)


class Finding(Value):
    """An answer in prose."""

    ticker: str = "AAPL"
    summary: str = ""
    news_summary: str = ""


class Draft(Value):
    """Answers in prose."""

    tickers: tuple[Finding, ...]
    notes: str = ""


def finding(**fields: str) -> Draft:
    return Draft(tickers=(Finding(**fields),))


def test_a_mark_names_the_figure_its_field_its_ticker_and_what_was_looked_for() -> None:
    found = ground(finding(summary="RSI of 58.55."), {"as_of": DAY}, [RESULT])
    assert found.checked == 1
    (mark,) = found.ungrounded
    assert (mark.figure, mark.field, mark.about) == ("58.55", "tickers.summary", "AAPL")
    assert "rsi_14 of AAPL" in mark.sought
    assert found.marks_on("AAPL") == (mark,)
    assert found.marks_on("MSFT") == ()


def test_a_ticker_in_a_text_is_marked_as_one() -> None:
    (mark,) = ground(finding(summary="ORCL is cheaper."), {}, [RESULT]).ungrounded
    assert mark.kind is MarkKind.TICKER
    assert ground(finding(summary="ORCL is cheaper."), {}, [RESULT]).marks_on("AAPL") == ()


def test_reports_of_the_task_are_evidence_and_its_words_are_none() -> None:
    report = {"assets": [{"ticker": "AAPL", "technical_indicators": {"rsi_14": 61.0}}]}
    said = finding(summary="RSI of 61.0.")
    assert ground(said, {"quant_report": report}, ()).ungrounded == ()
    assert ground(said, {"plan": {"objective": "RSI of 61.0"}}, ()).ungrounded != ()
    assert ground(said, {"agent_memory": report}, ()).ungrounded != ()


def test_what_was_marked_before_grounds_nothing_after() -> None:
    report = {"tickers": [{"ticker": "AAPL", "summary": "Orders worth $77 million came in."}]}
    mark = {"figure": "$77 million", "field": "tickers.summary", "about": "AAPL"}
    said = finding(summary="Orders worth $77 million came in.")
    assert ground(said, {"research_report": report}, ()).ungrounded == ()
    marked = {**report, "grounding": {"ungrounded": [mark]}}
    assert ground(said, {"research_report": marked}, ()).ungrounded != ()


def test_a_text_with_a_number_from_no_fact_and_the_words_of_a_reason_ground_nothing() -> None:
    why = "Orders worth $77 million came in."
    view = {"ticker": "AAPL", "rationale": f"For: a headline ({why}).", "reasons": [{"why": why}]}
    said = finding(summary=why)
    assert ground(said, {"sentiment_report": {"tickers": [view]}}, ()).ungrounded == ()
    loose = {"field": "tickers.0.rationale", "start": 29, "text": "77"}
    report = {"tickers": [view], "loose": [loose]}
    assert ground(said, {"sentiment_report": report}, ()).ungrounded != ()
    assert ground(said, {"signal_digest": {"tickers": [view]}}, ()).ungrounded == ()


def test_an_answer_of_any_size_is_checked_in_bounded_steps_and_says_what_it_left_out() -> None:
    texts = "close 1.5, " * 700
    many = [Finding(summary=texts, news_summary=texts)] * 10
    draft = Draft(tickers=tuple(many))
    found = ground(draft, {}, [RESULT])
    assert CLAIMS_MAX <= found.checked < 2 * CLAIMS_MAX
    assert found.unread > 0
    assert len(found.ungrounded) == MARKS_MAX
    assert found.marks_omitted > 0


def test_a_grounder_checks_with_the_evidence_that_the_answer_was_judged_by() -> None:
    task = Task(data={"as_of": date(2012, 6, 29).isoformat()})
    grounder = Grounder[Draft](task, lambda draft, evidence: [draft.notes])
    said = finding(summary="RSI of 55.58.")
    assert grounder.grounding(said).ungrounded != ()
    assert grounder(said, [RESULT]) == [""]
    assert grounder.grounding(said).ungrounded == ()
