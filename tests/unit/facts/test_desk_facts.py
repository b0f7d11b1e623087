"""What the desk itself holds is laid out as facts, what says the most first."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from contracts.sentiment import CANDIDATES_MAX, Candidate, Headline, SignalDigest
from libs.facts.desk import digest_facts
from libs.facts.fact import FactIndex
from libs.llm.agent import AgentLimits
from services.sentiment.reads import HEADLINES_MAX

AS_OF = date(2012, 6, 29)
NOON = datetime(2012, 6, 29, 12, tzinfo=UTC)


def digest_of(*candidates: Candidate) -> SignalDigest:
    return SignalDigest(cycle_id=UUID(int=0), op_id=UUID(int=0), as_of=AS_OF, candidates=candidates)


def headline(title: str, source: str = "Wire", days: int = 0) -> Headline:
    return Headline(title=title, source=source, published_at=NOON - timedelta(days=days))


def candidate(ticker: str, *headlines: Headline) -> Candidate:
    scores = {"screener": 0.5, "news": 0.25, "earnings": 1.0}
    return Candidate(
        ticker=ticker, sources=tuple(scores), scores=scores, mentions=7, headlines=headlines
    )


def test_of_the_fullest_digest_every_headline_is_shown() -> None:
    digest = digest_of(
        *(
            candidate(f"T{n}", *(headline(f"T{n} says {m}", days=m) for m in range(HEADLINES_MAX)))
            for n in range(CANDIDATES_MAX)
        )
    )
    facts = FactIndex.of(digest_facts(digest), digest.tickers)
    shown = facts.for_prompt(AgentLimits().facts_max)
    assert len(shown) < len(facts.by_name)
    assert {each.name for each in shown if each.is_published} == set(facts.publishers)
    assert len(facts.publishers) == CANDIDATES_MAX * HEADLINES_MAX


def test_a_candidates_mentions_and_scores_are_facts_with_their_source() -> None:
    facts = FactIndex.of(
        digest_facts(digest_of(candidate("AAPL", headline("it rises", "a paper"))))
    )
    (news,) = facts.publishers
    assert news.startswith("AAPL.headline@2012-06-29.")
    assert list(facts.by_name) == [
        news,
        "AAPL.mentions",
        "AAPL.screener_score",
        "AAPL.news_score",
        "AAPL.earnings_score",
    ]
    assert (facts.by_name[news].source, facts.by_name[news].known) == ("a paper", NOON.isoformat())
    assert facts.by_name["AAPL.news_score"].source == "news"


def test_one_title_at_one_time_by_two_publishers_is_one_fact_of_the_first() -> None:
    twice = candidate("AAPL", headline("it rises", "Wire"), headline("it rises", "Post"))
    facts = FactIndex.of(digest_facts(digest_of(twice)))
    assert list(facts.publishers.values()) == ["Wire"]
