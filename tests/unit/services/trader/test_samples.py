"""The trader asked several times on the same evidence: what it does not say again has no weight."""

from decimal import Decimal
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.trader import PicksDraft
from libs.llm.provider import ModelReply
from libs.llm.scripted import ScriptedProvider, says
from services.trader.samples import agreed, in_words
from tests.fakes.reasons import drafted
from tests.unit.services.trader.test_handler import facts, pick, picks, traded

__all__ = ["facts"]

DONE = ModelReply()


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
    chosen, unstable = agreed([draft(AAPL="20", IBM="10"), draft(AAPL="22", IBM="10")])

    assert bought(chosen) == {"AAPL": 20, "IBM": 10}
    assert unstable == ()


def test_what_only_some_say_is_left_out_and_told() -> None:
    chosen, unstable = agreed(
        [draft(AAPL="20", MSFT="10"), draft(AAPL="20"), draft(AAPL="25", IBM="10")]
    )

    assert bought(chosen) == {"AAPL": 20}
    assert [(each.ticker, each.buy, each.samples) for each in unstable] == [
        ("IBM", 1, 3),
        ("MSFT", 1, 3),
    ]
    assert in_words(unstable[0]).startswith("IBM: unstable, left out: of 3 answers")


def test_one_that_is_bought_and_sold_is_no_decision() -> None:
    chosen, (left_out,) = agreed([draft(IBM="20")] * 4 + [draft(IBM="-20")])

    assert bought(chosen) == {}
    assert (left_out.buy, left_out.sell) == (4, 1)


def test_weights_that_are_far_apart_are_no_decision() -> None:
    chosen, (left_out,) = agreed([draft(IBM="1"), draft(IBM="30"), draft(IBM="2")])

    assert bought(chosen) == {}
    assert left_out.spread > 0.5


def test_the_answer_that_stands_is_the_most_typical_one_whole() -> None:
    typical = draft(AAPL="20", IBM="12")
    others = [draft(AAPL="20", IBM="11")] * 4
    chosen, _ = agreed([draft(AAPL="20"), typical, *others])

    assert bought(chosen) == {"AAPL": 20, "IBM": 12}


@pytest.mark.parametrize(("provider", "calls"), [("claude", 4), ("rules", 2)])
async def test_a_model_is_asked_again_on_the_same_evidence_and_who_computes_is_not(
    desk: Any, facts: Any, provider: str, calls: int
) -> None:
    replies = [DONE, says(picks(pick())), says(picks(pick())), says(picks())]
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
    asked = model.requests[1:]
    assert len({request.seed for request in asked}) == len(asked)
    assert len({request.messages for request in asked}) == 1
    if provider == "claude":
        assert [each.ticker for each in result.unstable] == ["AAPL"]
        assert result.picks == ()
        assert "unstable" in result.corrected[0]
    else:
        assert [each.ticker for each in result.picks] == ["AAPL"]
