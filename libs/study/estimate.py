"""The calls of a study's cells: by this desk's record, else as stated here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from contracts.study import (
    FREE_PROVIDERS,
    StepCalls,
    Study,
    StudyArm,
    StudyCallsQuery,
    StudyCallsView,
)
from libs.bus.client import DeskNotReachable
from libs.runtime.model_settings import Price
from libs.runtime.settings import Settings

if TYPE_CHECKING:
    from libs.llm.endpoints.endpoint import ModelEndpoint


@dataclass(frozen=True)
class StageEstimate:
    """A stage of a pipeline: the step that asks its model, how often, and the model's size."""

    step: str
    calls: int
    size: str


STAGES: Mapping[str, StageEstimate] = {
    "sentiment": StageEstimate("sentiment", 1, "small"),
    "planner": StageEstimate("plan", 1, "medium"),
    "quant": StageEstimate("quant", 3, "medium"),
    "research": StageEstimate("analyst", 3, "medium"),
    "trader": StageEstimate("picks", 3, "large"),
    "risk": StageEstimate("review", 1, "medium"),
    "memory": StageEstimate("memorize", 1, "small"),
}
"""Those of a decision, as stated: with tools a model asks twice before it answers."""
PROBE_STAGES: Mapping[str, StageEstimate] = {"trader": StageEstimate("probe", 1, "large")}
IN_TOKENS, IN_TOKENS_A_TICKER, OUT_TOKENS = 3_000, 600, 900
"""Tokens of a call, as stated: the task with its facts, and the answer."""
PROBE_IN_TOKENS_A_TICKER = 2_500
"""The course of a quarter of sessions, with its indicators."""
CALL_S, FREE_ARM_S = 8.0, 0.12
"""Seconds of a model's call, as stated, and of an arm without any in one cell."""
StageSteps = Mapping[tuple[str, str], StepCalls]
"""Calls on record, by provider and step."""
NO_RECORD: StageSteps = MappingProxyType({})


@dataclass(frozen=True)
class Calls:
    """Calls of a stage in one cell: how many, what each takes, and by how many calls on record;
    0 where it is as stated."""

    stage: str
    size: str
    count: float
    in_tokens: float
    out_tokens: float
    seconds: float
    recorded: int = 0

    @property
    def tokens(self) -> float:
        """All of them in a cell."""
        return self.count * (self.in_tokens + self.out_tokens)


async def recorded(
    study: Study, ask: Callable[[StudyCallsQuery], Awaitable[StudyCallsView]]
) -> StageSteps:
    """Calls of the arms' providers on the record of the desk, which `ask` asks; none where no desk
    answers."""
    paid = {arm.provider for arm in study.arms} - FREE_PROVIDERS
    if not paid:
        return NO_RECORD
    try:
        return by_step((await ask(StudyCallsQuery(providers=tuple(sorted(paid))))).steps)
    except DeskNotReachable:
        return NO_RECORD


def by_step(recorded: Sequence[StepCalls]) -> StageSteps:
    """Calls on record, to be looked up."""
    return {(one.provider, one.step): one for one in recorded}


def decision_calls(provider: str, tickers: int, recorded: StageSteps) -> Sequence[Calls]:
    """The calls of one decision of an arm; none where its provider computes."""
    if provider in FREE_PROVIDERS:
        return ()
    return _calls(provider, STAGES, IN_TOKENS + IN_TOKENS_A_TICKER * tickers, recorded)


def probe_calls(provider: str, tickers: int, recorded: StageSteps) -> Sequence[Calls]:
    """The call of one probe: the trader's model reads the courses of all tickers."""
    in_tokens = IN_TOKENS + PROBE_IN_TOKENS_A_TICKER * tickers
    return _calls(provider, PROBE_STAGES, in_tokens, recorded)


def _calls(
    provider: str, stages: Mapping[str, StageEstimate], in_tokens: int, recorded: StageSteps
) -> Sequence[Calls]:
    calls = []
    for name, stage in stages.items():
        seen = recorded.get((provider, stage.step))
        if seen is None:
            calls.append(Calls(name, stage.size, stage.calls, in_tokens, OUT_TOKENS, CALL_S))
        else:
            sizes = (seen.calls_a_step, seen.input_tokens, seen.output_tokens, seen.seconds)
            calls.append(Calls(name, stage.size, *sizes, seen.calls))
    return calls


@dataclass(frozen=True)
class Providers:
    """The providers of the settings, and what their models cost."""

    known: frozenset[str]
    endpoints: "Mapping[str, ModelEndpoint]"
    prices: Mapping[str, Price]

    @classmethod
    def of(cls, settings: Settings) -> "Providers":
        """Those that the desk of these settings has."""
        from libs.llm.endpoints.endpoint import endpoints_of, prices_of  # noqa: PLC0415 - slow
        from libs.llm.registry import all_providers  # noqa: PLC0415

        return cls(frozenset(all_providers(settings)), endpoints_of(settings), prices_of(settings))

    def usd(self, arm: StudyArm, calls: Sequence[Calls]) -> Decimal | None:
        """Dollars by the prices of the models that the arm's stages use; None where one has
        none."""
        endpoint = self.endpoints.get(arm.provider)
        if endpoint is None:
            return None if calls else Decimal(0)
        if endpoint.free:
            return Decimal(0)
        total = Decimal(0)
        for one in calls:
            models = (arm.models.get(one.stage), endpoint.models.get(one.stage))
            model = next(filter(None, models), endpoint.models.get(one.size))
            price = self.prices.get(model or "")
            if price is None:
                return None
            sent, answered = Decimal(one.in_tokens), Decimal(one.out_tokens)
            total += Decimal(one.count) * (sent * price.input + answered * price.output) / 1_000_000
        return total


def sources(study: Study, recorded: StageSteps) -> Sequence[str]:
    """Sentences that say, by provider, what the estimates of its calls are from."""
    providers = dict.fromkeys(
        arm.provider for arm in study.arms if arm.provider not in FREE_PROVIDERS
    )
    sentences = []
    for provider in providers:
        calls = decision_calls(provider, len(study.universe), recorded)
        by_record = [one for one in calls if one.recorded]
        count = sum(one.recorded for one in by_record)
        if not by_record:
            sentences.append(f"{provider}: no call is on this desk's record; {STATED}")
        elif len(by_record) == len(calls):
            sentences.append(f"{provider}: medians of {count:,} calls on this desk's record")
        else:
            missing = ", ".join(one.stage for one in calls if not one.recorded)
            sentences.append(
                f"{provider}: medians of {count:,} calls on this desk's record; of {missing} "
                f"there is none: {STATED}"
            )
    return sentences


STATED = (
    f"supposed: {IN_TOKENS:,} tokens a call and {IN_TOKENS_A_TICKER} a ticker, {OUT_TOKENS} of "
    f"answer, {CALL_S:g} s"
)
"""The estimate where nothing is on record."""
