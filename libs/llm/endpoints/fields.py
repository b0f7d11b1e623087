"""The optional fields of a request, without those that its endpoint has refused by name.

What a server takes is known for certain only from the server. A refused grammar, or a field that it
does not know, is left out from then on, and the prompt's words stand alone: the refusal, which
costs nothing, comes once for a model (and for a contract, where its grammar is refused).
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

import orjson
import structlog

from libs.llm.errors import FieldRefused, ModelError, RequestRefused
from libs.llm.provider import ModelRequest

GRAMMAR = "grammar"
"""The schema that binds an answer: the one field that is refused for what it holds."""

log = structlog.get_logger()


class Fields:
    """The fields that one endpoint refuses. `words` are, by field, its names in a refusal."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self._named = {name: _any_of(synonyms) for name, synonyms in words.items()}
        self._refused: set[tuple[str, str]] = set()

    def left_out(self, request: ModelRequest) -> frozenset[str]:
        """The fields that this request must do without."""
        return frozenset(
            name for name in self._named if (name, _scope(name, request)) in self._refused
        )

    def learn(self, request: ModelRequest, sent: Collection[str], error: ModelError) -> ModelError:
        """The error, or FieldRefused where it names a field among those sent."""
        if not isinstance(error, RequestRefused):
            return error
        message = error.message.lower()
        refused = [name for name in sent if self._named[name].search(message)]
        if not refused:
            return error
        self._refused |= {(name, _scope(name, request)) for name in refused}
        log.warning("llm.field_refused", model=request.model, fields=refused, error=error.message)
        asked_again = f"{error.message}; asked again without {' and '.join(refused)}"
        return FieldRefused(asked_again, refused)


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{re.escape(word)}" for word in words))


def _scope(name: str, request: ModelRequest) -> str:
    """The scope of a refusal: the model's calls of this sort, or this contract's."""
    if name == GRAMMAR:
        schema = orjson.dumps(request.output_schema, option=orjson.OPT_SORT_KEYS)
        return f"{request.model} {hashlib.sha256(schema).hexdigest()}"
    return f"{request.model} {'tools' if request.tools else 'answer'}"
