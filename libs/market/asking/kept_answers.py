"""Answers of a live source, kept for a while with the moment they were given."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from libs.market.errors import MarketError

KEPT_MAX = 4_000
KEPT_BYTES_MAX = 256 * 1024 * 1024
KEPT_S_MAX = 24 * 3600.0
"""After this an answer is asked for anew."""
REFUSED_S = 600.0
"""How long it is remembered that the source does not know a ticker."""


@dataclass(frozen=True)
class KeptAnswer:
    """Yahoo's answer and its time; or its refusal, which holds for REFUSED_S."""

    at: datetime
    value: Any
    refused: MarketError | None
    size_bytes: int


class AnswerCache:
    """The newest used answers, within KEPT_MAX, KEPT_BYTES_MAX and KEPT_S_MAX."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, KeptAnswer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, now: datetime) -> KeptAnswer | None:
        """The answer, if it is not too old."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                return None
            age_s = (now - answer.at).total_seconds()
            if age_s > (KEPT_S_MAX if answer.refused is None else REFUSED_S):
                self._drop(key)
                return None
            self._answers.move_to_end(key)
            return answer

    def put(self, key: Hashable, answer: KeptAnswer) -> None:
        """Keep it, and let go of those used longest ago where there are too many."""
        with self._lock:
            self._drop(key)
            self._answers[key] = answer
            self._bytes += answer.size_bytes
            while len(self._answers) > KEPT_MAX or self._bytes > KEPT_BYTES_MAX:
                self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        gone = self._answers.pop(key, None)
        self._bytes -= gone.size_bytes if gone is not None else 0
