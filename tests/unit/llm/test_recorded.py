"""The provider of a replay: it is called what the record says, and answers nothing."""

import pytest

from contracts.operation import CallKind, JournalEntry
from libs.llm.errors import ProviderNotUsable
from libs.llm.provider import ModelRequest, ModelSize
from libs.llm.recorded import RecordedProvider


def entry(index: int, kind: CallKind, **request: object) -> JournalEntry:
    return JournalEntry(
        index=index, kind=kind, name="n", request_sha256="0" * 64, request=request, reply=None
    )


def test_it_speaks_as_the_model_of_the_operation_that_is_replayed() -> None:
    provider = RecordedProvider("claude")
    first = [
        entry(0, CallKind.TOOL, model="no model"),
        entry(1, CallKind.MODEL, model="opus"),
        entry(2, CallKind.MODEL, again=1),
    ]

    provider.follow(first)
    assert provider.model_for("trader", ModelSize.SMALL) == "opus"
    provider.follow([entry(0, CallKind.MODEL, model="haiku")])
    assert provider.model_for("memory", ModelSize.LARGE) == "haiku"
    provider.follow([])
    assert provider.model_for("memory", ModelSize.LARGE) == ""


async def test_it_reserves_nothing_and_answers_nothing() -> None:
    provider = RecordedProvider("claude")
    request = ModelRequest(
        agent="trader", model="opus", system="", system_sha256="0" * 64, messages=()
    )

    assert provider.reserve(request) is None
    with pytest.raises(ProviderNotUsable, match="trader: a replay asks no model"):
        await provider.complete(request)
