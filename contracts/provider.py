"""Providers: which of them a desk can use, and what is wrong with a request's wish for one."""

from pydantic import Field

from contracts.message import Message, Pipeline
from contracts.operation import Reserve
from contracts.types import Name, Text, Value

PROVIDERS_MAX = 100


class ProvidersQuery(Message):
    """Which providers can be used, and could these pipelines begin?"""

    pipelines: tuple[Pipeline, ...] = Field(default=(), max_length=PROVIDERS_MAX)


class ProviderStanding(Value):
    """Whether a provider can be used; `why` it cannot, and what to do.

    `expected` where somebody has set it up: then not being usable is a mistake.
    """

    name: Name
    usable: bool
    why: Text = ""
    expected: bool = False


class PipelineProblem(Value):
    """Why a pipeline could not begin: a stable code, and a sentence that says what to do."""

    pipeline: Name
    code: Name
    message: Text


class ProvidersView(Message):
    """The providers of the services that talk to models; no key is part of it.

    `needs` is the least that the dearest model of these pipelines may cost in one call: with less
    to spend they cannot end. None where all of them are free of any count.
    """

    providers: tuple[ProviderStanding, ...] = Field(default=(), max_length=PROVIDERS_MAX)
    problems: tuple[PipelineProblem, ...] = Field(default=(), max_length=PROVIDERS_MAX)
    needs: Reserve | None = None
