"""A provider of the past: it names the model that a journal has calls of, and answers nothing."""

from collections.abc import Iterable

from contracts.operation import CallKind, JournalEntry, Reserve
from libs.llm.errors import ProviderNotUsable
from libs.llm.provider import ModelReply, ModelRequest, ModelSize


class RecordedProvider:
    """For a replay, which needs no key, no price and no address: only what the models were called.

    So an auditor can replay what others have paid for, and a desk whose models are others by now.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._model = ""

    def follow(self, journal: Iterable[JournalEntry]) -> None:
        """From now on speak as the model of these calls; of one operation, as each has its own."""
        requests = (entry.request for entry in journal if entry.kind is CallKind.MODEL)
        first = next((request for request in requests if isinstance(request, dict)), {})
        self._model = str(first.get("model", ""))

    def model_for(self, stage: str, size: ModelSize) -> str:
        """The model on record; empty where no call is."""
        del stage, size
        return self._model

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """Nothing: no call is made."""
        del request
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raises ProviderNotUsable."""
        raise ProviderNotUsable(f"{request.agent}: a replay asks no model")
