"""Who answers which stage of a new cycle: the request's choice, else the settings'. Pure."""

from collections.abc import Mapping

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.runtime.model_settings import EndpointSettings


def staged(request: CycleRequest, providers: Mapping[str, EndpointSettings]) -> CycleRequest:
    """The request with its pipelines' `stages`, `fallback` and `programs` as they are when it is
    accepted, so that a later change of the settings changes nothing of the cycle."""
    pipelines = tuple(_staged(pipeline, providers) for pipeline in request.pipelines)
    return request.model_copy(update={"pipelines": pipelines})


def _staged(pipeline: Pipeline, providers: Mapping[str, EndpointSettings]) -> Pipeline:
    endpoint = providers.get(pipeline.provider, EndpointSettings())
    set_ = {stage: by for stage, by in endpoint.stages.items() if stage not in pipeline.models}
    stages = {**set_, **pipeline.stages}
    fallback = {**endpoint.fallback, **pipeline.fallback}
    # Who answers a stage already is no fallback for it.
    kept = {stage: by for stage, by in fallback.items() if by != stages.get(stage)}
    answering = dict.fromkeys((pipeline.provider, *stages.values(), *kept.values()))
    programs = tuple(name for name in answering if name in providers and providers[name].command)
    return pipeline.model_copy(update={"stages": stages, "fallback": kept, "programs": programs})
