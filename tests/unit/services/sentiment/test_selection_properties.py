"""The selection of a digest on random sources: what holds whatever they name."""

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.sentiment import CANDIDATES_MAX
from services.sentiment import logic
from services.sentiment.logic import EARNINGS, NEWS, SCREENER, Mention, SourceAnswer

quick = settings(max_examples=60)
TICKERS = [f"T{number}" for number in range(60)]
SLOTS = {name: round(CANDIDATES_MAX * share) for name, share in logic.SLOT_SHARES.items()}


def answers_of(names: tuple[str, ...]) -> st.SearchStrategy[list[SourceAnswer]]:
    mentions = st.dictionaries(
        st.sampled_from(TICKERS), st.floats(0, 1, allow_nan=False), max_size=60
    ).map(lambda found: tuple(Mention(ticker=t, score=score) for t, score in found.items()))
    return st.tuples(*[mentions] * len(names)).map(
        lambda each: [
            SourceAnswer(name=name, mentions=found) for name, found in zip(names, each, strict=True)
        ]
    )


sources = answers_of((SCREENER, NEWS, EARNINGS, "rumours"))


@quick
@given(answers=sources)
def test_every_ticker_is_a_candidate_or_dropped_with_a_reason_and_never_both(answers):
    chosen = logic.select(answers, None, {})
    kept = [item.ticker for item in chosen.candidates]
    dropped = [item.ticker for item in chosen.dropped]
    named = {mention.ticker for answer in answers for mention in answer.mentions}
    assert len(kept) <= CANDIDATES_MAX
    assert sorted(kept + dropped) == sorted(named)
    assert all(item.reason for item in chosen.dropped)
    assert len(kept) == min(len(named), CANDIDATES_MAX)


@quick
@given(answers=sources)
def test_no_ticker_of_one_source_stands_before_one_of_several(answers):
    counts = [len(item.sources) > 1 for item in logic.select(answers, None, {}).candidates]
    assert counts == sorted(counts, reverse=True)


@quick
@given(answers=sources)
def test_kept_places_are_filled_or_their_source_has_no_more_to_name(answers):
    chosen = logic.select(answers, None, {}).candidates
    confirmed = sum(len(item.sources) > 1 for item in chosen)
    left = {item.ticker for item in logic.select(answers, None, {}).dropped}
    room = CANDIDATES_MAX - confirmed
    for source, slots in SLOTS.items():
        taken = sum(source in item.sources for item in chosen)
        unheard = left & {
            m.ticker for answer in answers if answer.name == source for m in answer.mentions
        }
        assert taken >= slots or not unheard or room < sum(SLOTS.values())


@quick
@given(answers=sources, order=st.permutations(range(4)))
def test_the_order_in_which_sources_answer_does_not_change_who_is_chosen(answers, order):
    turned = [answers[place] for place in order]
    straight = [item.ticker for item in logic.select(answers, None, {}).candidates]
    assert [item.ticker for item in logic.select(turned, None, {}).candidates] == straight
