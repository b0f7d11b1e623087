"""Whether a status, a verdict or a signal is good or bad; each edge has its colours. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class Tone(StrEnum):
    """Good and bad as a trader sees them, `busy` for what is under way, `quiet` for the rest."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


TONES: Mapping[str, Tone] = {
    **dict.fromkeys(("completed", "filled", "ok"), Tone.GOOD),
    **dict.fromkeys(("running", "working"), Tone.BUSY),
    **dict.fromkeys(("cancelled", "rejected", "expired"), Tone.WARN),
    "failed": Tone.BAD,
    # A message's to people, and a notice's severity.
    "sent": Tone.GOOD,
    "due": Tone.BUSY,
    "given_up": Tone.BAD,
    "warning": Tone.WARN,
    "alarm": Tone.BAD,
    # A strategy's, by its verdict or the gate that stopped it.
    "promising": Tone.GOOD,
    "mediocre": Tone.WARN,
    "poor": Tone.BAD,
    **dict.fromkeys(("training_gate", "backtest_gate"), Tone.WARN),
    # A person's verdict, a rule's, and the quant's.
    "approve": Tone.GOOD,
    "edit": Tone.WARN,
    "reject": Tone.WARN,
    "kept": Tone.GOOD,
    "cut": Tone.WARN,
    "vetoed": Tone.BAD,
    "bullish": Tone.GOOD,
    "bearish": Tone.BAD,
    "uncertain": Tone.WARN,
}


MARKS: Mapping[str, str] = {
    "completed": "✓",
    "running": "▸",
    "pending": "·",
    "failed": "✗",
    **dict.fromkeys(("cancelled", "rejected", "expired"), "⊘"),
}
"""The mark of a status, for whoever sees no colours."""


def tone(word: object) -> Tone:
    """The tone of a status, a verdict or a signal."""
    return TONES.get(str(word), Tone.QUIET)
