"""The providers that a desk has, by the name that pipelines use."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contracts.message import Pipeline
from contracts.operation import Reserve
from contracts.provider import ProviderStanding
from libs.llm.agent import AgentLimits
from libs.llm.endpoints.endpoint import ModelEndpoint, endpoints_of, prices_of
from libs.llm.endpoints.keys import key_of
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.errors import ModelError, ProviderNotUsable, ProviderUnknown, StageUnknown
from libs.llm.provider import FREE, ModelReply, ModelRequest, ModelSize, Provider
from libs.llm.rules.coin import COIN, CoinProvider
from libs.llm.rules.proposal import ProposalProvider
from libs.llm.rules.provider import RulesProvider
from libs.runtime.extras import ExtraMissing, require
from libs.runtime.model_settings import PROPOSAL, SCRIPTED, STAGES, EndpointSettings
from libs.runtime.settings import Settings

_PROBE = ModelRequest(
    agent="doctor",
    model="",
    system="",
    system_sha256=hashlib.sha256(b"").hexdigest(),
    messages=(),
)


@dataclass(frozen=True)
class NotUsable:
    """Stands for a provider that the desk knows and cannot use: whatever is asked of it says why.

    `expected` is True where somebody has set something for it.
    """

    name: str
    why: str
    expected: bool = False

    def model_for(self, stage: str, size: ModelSize) -> str:
        """Raises ProviderNotUsable."""
        del stage, size
        raise ProviderNotUsable(self.why)

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """Raises ProviderNotUsable."""
        del request
        raise ProviderNotUsable(self.why)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raises ProviderNotUsable."""
        del request
        raise ProviderNotUsable(self.why)


def all_providers(settings: Settings) -> Mapping[str, Provider]:
    """All that the settings and the presets name, those too that cannot be used.

    No key leaves this process and no SDK is imported before the first call.
    """
    providers = {
        name: _provider(endpoint, settings) for name, endpoint in endpoints_of(settings).items()
    }
    scripted = _scripted() if settings.demo else {}
    built_in = {FREE: RulesProvider(), COIN: CoinProvider(), PROPOSAL: ProposalProvider()}
    return {**built_in, **providers, **scripted}


def _scripted() -> Mapping[str, Provider]:
    from libs.llm.committee import CommitteeProvider  # noqa: PLC0415 - the demo's alone

    return {SCRIPTED: CommitteeProvider()}


@asynccontextmanager
async def providers_of(settings: Settings) -> AsyncIterator[Mapping[str, Provider]]:
    """The providers for as long as a service runs."""
    providers = all_providers(settings)
    try:
        yield providers
    finally:
        for provider in providers.values():
            if isinstance(provider, RemoteProvider):
                await provider.close()


def _provider(endpoint: ModelEndpoint, settings: Settings) -> Provider:
    try:
        _complete(endpoint)
        key = None if endpoint.command else key_of(endpoint, settings.secrets_path)
    except ProviderNotUsable as error:
        return NotUsable(endpoint.name, error.message, endpoint.named)
    return RemoteProvider(endpoint, key, prices_of(settings))


def _complete(endpoint: ModelEndpoint) -> None:
    """Raises ProviderNotUsable where something is missing that only a person can give."""
    section = f"[providers.{endpoint.name}]"
    if endpoint.command is not None:
        return
    if not endpoint.base_url:
        raise ProviderNotUsable(
            f"{endpoint.name} has no address: set base_url in {section} of deskbus.toml"
        )
    missing = [size for size in ModelSize if not endpoint.model_for("", size)]
    if missing:
        absent = "models" if len(missing) == len(ModelSize) else f"{' and '.join(missing)} model"
        raise ProviderNotUsable(
            f"{endpoint.name} has no {absent}: set models in {section} of "
            'deskbus.toml, for example models = { small = "NAME", medium = "NAME", large = "NAME" }'
        )
    try:
        require(endpoint.wire, endpoint.name)
    except ExtraMissing as error:
        raise ProviderNotUsable(error.message) from None


def standings(
    providers: Mapping[str, Provider], endpoints: Mapping[str, EndpointSettings]
) -> tuple[ProviderStanding, ...]:
    """Each provider, and whether it and those that answer stages for it can be used.

    `endpoints` are those of the settings.
    """
    return tuple(
        _standing(provider, providers, endpoints.get(name, EndpointSettings()), name)
        for name, provider in providers.items()
        if name != PROPOSAL  # a proposer's cycles alone have it
    )


def _standing(
    provider: Provider, providers: Mapping[str, Provider], set_: EndpointSettings, name: str
) -> ProviderStanding:
    pipeline = Pipeline(name=name, provider=name, stages=set_.stages, fallback=set_.fallback)
    problem = problem_of(providers, pipeline)
    if problem is None:
        return ProviderStanding(name=name, usable=True, stages=set_.stages, fallback=set_.fallback)
    expected = not isinstance(provider, NotUsable) or provider.expected
    return ProviderStanding(name=name, usable=False, why=problem.message, expected=expected)


def usable(providers: Mapping[str, Provider]) -> tuple[str, ...]:
    """The names of those that can be used now."""
    return tuple(
        name
        for name, provider in providers.items()
        if name != PROPOSAL and not isinstance(provider, NotUsable)
    )


def problem_of(providers: Mapping[str, Provider], pipeline: Pipeline) -> ModelError | None:
    """The reason why the pipeline cannot begin: no such provider, model or stage."""
    names = dict.fromkeys(_answering(pipeline))
    for name in names:
        if name not in providers:
            return ProviderUnknown(name, usable(providers))
    unknown = sorted(set(pipeline.models) - set(STAGES))
    if unknown:
        return StageUnknown(
            f"models names {', '.join(unknown)}, and the stages are {', '.join(STAGES)}"
        )
    twice = sorted(set(pipeline.models) & set(pipeline.stages))
    if twice:
        away = ", ".join(f"{stage} (to {pipeline.answers(stage)})" for stage in twice)
        return StageUnknown(f"models names a model for stages that are given away: {away}")
    try:
        _reserves(providers, pipeline)
    except ModelError as error:
        return error
    return None


async def unproven_of(providers: Mapping[str, Provider], pipeline: Pipeline) -> ModelError | None:
    """Why a program that may answer the pipeline may not be asked, tried now; None where there is
    none, or where the probe of each has reached nothing."""
    for name in dict.fromkeys(_answering(pipeline)):
        provider = providers.get(name)
        if isinstance(provider, RemoteProvider) and (error := await provider.unproven()):
            return error
    return None


def least_of(providers: Mapping[str, Provider], pipelines: Sequence[Pipeline]) -> Reserve | None:
    """The least that a call of these pipelines' dearest model may cost; None where no call counts.

    The pipelines have no problem: what `problem_of` tells is raised.
    """
    needed = [reserve for pipeline in pipelines for reserve in _reserves(providers, pipeline)]
    if not needed:
        return None
    return Reserve(
        tokens=max(reserve.tokens for reserve in needed),
        cost_usd=max(
            (usd for reserve in needed if (usd := reserve.cost_usd) is not None), default=None
        ),
    )


def _answering(pipeline: Pipeline) -> Sequence[str]:
    """The providers that may answer a stage of a pipeline, its own first."""
    return (pipeline.provider, *pipeline.stages.values(), *pipeline.fallback.values())


def _reserves(providers: Mapping[str, Provider], pipeline: Pipeline) -> Sequence[Reserve]:
    """The reserve of an empty call of each model that the pipeline may ask."""
    asked = [
        (providers[name], providers[name].model_for("", size))
        for name in dict.fromkeys(_answering(pipeline))
        for size in ModelSize
    ]
    own = [(providers[pipeline.provider], model) for model in pipeline.models.values()]
    probes = dict.fromkeys((*asked, *own))
    reserves = [
        provider.reserve(_PROBE.model_copy(update={"model": model})) for provider, model in probes
    ]
    return [reserve for reserve in reserves if reserve is not None]


def limits_of(settings: Settings) -> AgentLimits:
    """The loop's limits as set."""
    return AgentLimits(
        rounds_max=settings.model.tool_rounds_max,
        attempts_max=settings.model.attempts_max,
        wait_s_max=settings.model.wait_s_max,
        facts_max=settings.model.facts_max,
    )
