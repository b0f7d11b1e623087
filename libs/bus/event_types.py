"""The types of events that a pattern may ask for."""

from contracts.audit import fits
from contracts.subjects.events import EVENTS
from libs.runtime.nearest import UnknownName


def require_known(pattern: str) -> None:
    """Raise UnknownName where no event can ever fit the pattern: who waits would wait for ever."""
    if any(fits(pattern, row.owner, row.what) for row in EVENTS):
        return
    kinds = sorted({row.what for row in EVENTS})
    groups = {f"{kind.partition('_')[0]}_*" for kind in kinds if "_" in kind}
    owned = {f"{row.owner}.{row.what}" for row in EVENTS} | {f"{row.owner}.*" for row in EVENTS}
    raise UnknownName("event type", pattern, kinds, sorted(groups | owned), field="type")
