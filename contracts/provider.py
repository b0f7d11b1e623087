"""Providers: which of them a desk can use, and what is wrong with a request's wish for one."""

import operator

from pydantic import Field

from contracts.message import Message, Pipeline
from contracts.operation import Reserve
from contracts.stages import WORDS, Stage
from contracts.types import Name, Text, Value

PROVIDERS_MAX = 100


class ProvidersQuery(Message):
    """Which providers can be used, and could these pipelines begin?"""

    pipelines: tuple[Pipeline, ...] = Field(default=(), max_length=PROVIDERS_MAX)


class ProviderStanding(Value):
    """Whether a provider can be used; `why` it cannot, and what to do.

    `expected` where somebody has set it up: then not being usable is a mistake. `stages` are given
    to another provider, `fallback` where a stage has failed.
    """

    name: Name
    usable: bool
    why: Text = ""
    expected: bool = False
    stages: dict[Stage, Name] = Field(default_factory=dict, exclude_if=operator.not_)
    fallback: dict[Stage, Name] = Field(default_factory=dict, exclude_if=operator.not_)

    @property
    def described(self) -> str:
        """Who answers in its place: `plan by rules; picks by rules after a failure`; empty where
        nobody does."""
        as_set = [f"{WORDS[stage]} by {by}" for stage, by in self.stages.items()]
        after = [f"{WORDS[stage]} by {by} after a failure" for stage, by in self.fallback.items()]
        return "; ".join((*as_set, *after))


class PipelineProblem(Value):
    """Why a pipeline could not begin: a stable code, and a sentence that says what to do."""

    pipeline: Name
    code: Name
    message: Text


class ProvidersView(Message):
    """The providers of the services that use models, without keys.

    `needs` is the lowest cost of one call of these pipelines' most expensive model: with a smaller
    budget they cannot finish. None if all of them are free.
    """

    providers: tuple[ProviderStanding, ...] = Field(default=(), max_length=PROVIDERS_MAX)
    problems: tuple[PipelineProblem, ...] = Field(default=(), max_length=PROVIDERS_MAX)
    needs: Reserve | None = None
