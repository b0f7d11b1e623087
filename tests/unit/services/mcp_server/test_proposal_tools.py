"""What a proposer's tools take: a field that would not count is refused, not dropped."""

from typing import Any, cast

import pytest
from pydantic import ValidationError

from libs.runtime.wording import describe
from services.mcp_server.proposals import ProposerLinks, proposal_tools

PICK = {"ticker": "GOOG", "action": "buy", "allocation_pct": 30}


def taken(**pick: Any) -> Any:
    tools = {tool.name: tool for tool in proposal_tools(cast("ProposerLinks", None), lambda: "bot")}
    model = tools["propose_trades"].fn_metadata.arg_model
    return model.model_validate({"proposal_id": "p-1", "picks": [pick]})


def test_a_pick_is_taken() -> None:
    assert taken(**PICK).picks[0].ticker == "GOOG"


def test_a_stop_that_nothing_would_keep_is_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        taken(**PICK, stop_price=3)
    assert describe(caught.value) == "picks.0.stop_price: unknown field"
