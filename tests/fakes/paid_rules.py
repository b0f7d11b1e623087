"""The rules as a provider that costs: the same answers, with tokens of every sort and a price."""

from decimal import Decimal

from contracts.operation import Reserve
from contracts.types import Usage
from libs.llm.provider import ModelReply, ModelRequest, ModelSize
from libs.llm.rules.provider import RulesProvider

HELD = Reserve(tokens=1_000, cost_usd=Decimal("0.01"))
"""What each call holds back."""
USED = Usage(
    input_tokens=500,
    output_tokens=200,
    cache_read_tokens=70,
    cache_write_tokens=30,
    cost_usd=Decimal("0.008"),
)
"""What each call uses: 800 tokens."""


class PaidRules:
    """Thinks as the rules do, and takes money for it. `asked` counts the calls."""

    def __init__(self, name: str = "paid") -> None:
        self.name = name
        self.asked = 0
        self._rules = RulesProvider()

    def model_for(self, stage: str, size: ModelSize) -> str:
        return self._rules.model_for(stage, size)

    def reserve(self, request: ModelRequest) -> Reserve:
        del request
        return HELD

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        reply = await self._rules.complete(request)
        return reply.model_copy(update={"usage": USED})
