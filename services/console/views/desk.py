"""The console's access to the desk: its tables, its bus and its market source."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from libs.bus.dead_letters import DeadLetters
from libs.bus.health import BusHealth
from libs.market.calendar import ExchangeCalendar
from libs.postgres.pool import Pool
from libs.runtime.settings import Settings
from services.console.market_history import MarketHistory
from services.console.store import Store
from services.console.views.past_cycles import PastCycles


@dataclass(frozen=True)
class DeskViews:
    """Everything that answers are read from. `synthetic` says that the market source's prices are
    made up."""

    pool: Pool
    store: Store
    past: PastCycles
    letters: DeadLetters
    health: BusHealth
    history: MarketHistory
    synthetic: bool
    calendar: ExchangeCalendar
    settings: Settings
    now: Callable[[], datetime]
