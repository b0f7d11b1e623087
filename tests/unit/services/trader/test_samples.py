"""The trader asked several times on the same evidence: what it does not say again has no weight."""

from decimal import Decimal
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.trader import PicksDraft
from libs.llm.provider import ModelReply
from services.trader.samples import agreed, in_words
from tests.fakes.reasons import drafted
from tests.fakes.scripted_model import ScriptedProvider, asks, says
from tests.unit.services.trader.test_handler import facts, pick, picks, traded

__all__ = ["facts"]

READ, DONE = asks(("get_portfolio", {})), ModelReply()


def draft(**allocations: str) -> PicksDraft:
    """Buys of these tickers; a share that begins with a minus is a sale."""
    buys = [
        pick(name, allocation_pct=share) for name, share in allocations.items() if share[0] != "-"
    ]
    sales = [
        {"ticker": name, "allocation_pct": share[1:], "confidence": 0.5, "reasons": [drafted(name)]}
        for name, share in allocations.items()
        if share[0] == "-"
    ]
    return PicksDraft.model_validate({**picks(*buys), "sell_recommendations": sales})


def bought(chosen: PicksDraft) -> dict[str, Decimal]:
    return {each.ticker: each.allocation_pct for each in chosen.picks}


def test_what_all_say_stands_with_the_weights_of_one_of_them() -> None:
    of = agreed([draft(AAPL="20", IBM="10"), draft(AAPL="22", IBM="10")])

    assert bought(of.draft) == {"AAPL": 20, "IBM": 10}
    assert (of.unstable, of.notes) == ((), ())


def test_what_only_some_say_is_left_out_and_told() -> None:
    of = agreed([draft(AAPL="20", MSFT="10"), draft(AAPL="20"), draft(AAPL="25", IBM="10")])

    assert bought(of.draft) == {"AAPL": 20}
    assert [(each.ticker, each.buy, each.samples) for each in of.unstable] == [
        ("IBM", 1, 3),
        ("MSFT", 1, 3),
    ]
    assert in_words(of.unstable[0]).startswith("IBM: unstable, left out: of 3 answers")


def test_one_that_is_bought_and_sold_is_no_decision() -> None:
    of = agreed([draft(IBM="20")] * 4 + [draft(IBM="-20")])

    assert bought(of.draft) == {}
    assert [(it.buy, it.sell) for it in of.unstable] == [(4, 1)]


def test_weights_that_are_far_apart_are_no_decision() -> None:
    of = agreed([draft(IBM="1"), draft(IBM="30"), draft(IBM="2")])

    assert bought(of.draft) == {}
    assert [it.spread > 0.5 for it in of.unstable] == [True]


def test_the_answer_that_stands_is_the_most_typical_one_whole() -> None:
    typical = draft(AAPL="20", IBM="12")
    others = [draft(AAPL="20", IBM="11")] * 4
    of = agreed([draft(AAPL="20"), typical, *others])

    assert bought(of.draft) == {"AAPL": 20, "IBM": 12}


def test_what_was_agreed_on_and_the_most_typical_answer_lacks_is_taken_from_another() -> None:
    """Each of five lacks another one, so none has all that four of them agree on."""
    names = ("AAPL", "GOOG", "IBM", "MSFT", "ORCL")
    five = [draft(**{name: "12" for name in names if name != lacks}) for lacks in names]

    of = agreed(five)

    assert bought(of.draft) == dict.fromkeys(("GOOG", "IBM", "MSFT", "ORCL", "AAPL"), 12)
    assert of.unstable == ()
    (note,) = of.notes
    assert note.startswith("AAPL: 4 of 5 answers on the same evidence would buy it, the most ")
    assert note.endswith("would not: taken from the most typical of those that would")


def test_a_sale_that_was_agreed_on_is_not_forgotten_by_the_answer_that_stands() -> None:
    shares = {"MSFT": "-50", "AAPL": "12", "GOOG": "12", "IBM": "12", "ORCL": "12"}
    five = [
        draft(**{name: share for name, share in shares.items() if name != lacks})
        for lacks in shares
    ]

    of = agreed(five)

    assert [pick.ticker for pick in of.draft.sell_recommendations] == ["MSFT"]
    assert of.notes[0].startswith("MSFT: 4 of 5 answers on the same evidence would sell it")


def test_what_does_not_fit_into_the_budget_beside_the_answer_that_stands_is_told() -> None:
    names = ("AAPL", "GOOG", "IBM", "MSFT", "ORCL")
    five = [draft(**{name: "25" for name in names if name != lacks}) for lacks in names]

    of = agreed(five)

    assert len(of.draft.picks) == 4
    assert of.notes[0].endswith("and 25% more do not fit beside it: left out")


@pytest.mark.parametrize(("provider", "calls"), [("claude", 5), ("rules", 3)])
async def test_a_model_is_asked_again_on_the_same_evidence_and_who_computes_is_not(
    desk: Any, facts: Any, provider: str, calls: int
) -> None:
    replies = [READ, DONE, says(picks(pick())), says(picks(pick())), says(picks())]
    model = ScriptedProvider(replies)
    desk.providers = {provider: model}
    pipeline = {"name": "it", "provider": provider}
    known, found = facts
    request = CycleRequest.model_validate(
        {"idempotency_key": "test", "samples": 3, "pipelines": [pipeline]}
    )

    result = await traded(
        desk, ({**known, "request": request}, found), pipeline=request.pipelines[0]
    )

    assert model.calls == calls
    asked = model.requests[2:]
    assert len({request.seed for request in asked}) == len(asked)
    assert len({request.messages for request in asked}) == 1
    if provider == "claude":
        assert [each.ticker for each in result.unstable] == ["AAPL"]
        assert result.picks == ()
        assert "unstable" in result.corrected[0]
    else:
        assert [each.ticker for each in result.picks] == ["AAPL"]
