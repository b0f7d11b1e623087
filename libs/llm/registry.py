"""The providers that a desk has, by the name that pipelines use."""

from collections.abc import Mapping

from libs.llm.agent import Limits
from libs.llm.provider import Provider
from libs.llm.rules.provider import RulesProvider
from libs.runtime.settings import Settings


def providers_of(settings: Settings) -> Mapping[str, Provider]:
    """The providers that these settings allow; `rules` is always there."""
    del settings  # keys for claude and openai come with them
    return {"rules": RulesProvider()}


def limits_of(settings: Settings) -> Limits:
    """The loop's limits as set."""
    return Limits(rounds_max=settings.tool_rounds_max)
