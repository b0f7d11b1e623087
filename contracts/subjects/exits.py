"""Exit signals: checks of positions, and what an account holds."""

from contracts.exit_signal import (
    CheckExitSignals,
    ExitDistances,
    ExitDistancesQuery,
    ExitSignals,
    Holdings,
    HoldingsQuery,
)
from contracts.subjects.subject import AGENTS, REQUESTERS, Class, Subject

EXIT_SIGNALS = Subject(
    Class.QUERY, "exit_signal", "check", CheckExitSignals, ExitSignals, (*REQUESTERS, *AGENTS)
)
EXIT_DISTANCES = Subject(
    Class.QUERY, "exit_signal", "distances", ExitDistancesQuery, ExitDistances, REQUESTERS
)
HOLDINGS = Subject(Class.QUERY, "execution", "holdings", HoldingsQuery, Holdings, ("exit_signal",))
