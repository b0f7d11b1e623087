"""Accounts: their books and what came of them, and their owners' money."""

from contracts.account import Portfolio, PortfolioQuery
from contracts.account_query import AccountQuery, AccountView, EquityQuery, EquityView
from contracts.capital import CashMoved, HoldingsImport, ImportHoldings, MoveCash
from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.risk_use import (
    LimitPreview,
    LimitQuery,
    LimitRecorded,
    RiskQuery,
    RiskView,
    SetLimit,
)
from contracts.subjects.subject import CLI, USERS, Class, Subject, console

PORTFOLIO = Subject(Class.QUERY, "execution", "portfolio", PortfolioQuery, Portfolio, USERS)

# An owner's money is moved, and limits are set, by a person at the desk's own command line: by no
# program, no page and no model.
IMPORT_HOLDINGS = Subject(
    Class.REQUEST, "execution", "import_holdings", ImportHoldings, HoldingsImport, (CLI,)
)
MOVE_CASH = Subject(Class.REQUEST, "execution", "move_cash", MoveCash, CashMoved, (CLI,))
SET_LIMIT = Subject(Class.REQUEST, "execution", "set_limit", SetLimit, LimitRecorded, (CLI,))

ACCOUNT = console("account", AccountQuery, AccountView, agents=True)
EQUITY = console("equity", EquityQuery, EquityView)
RISK = console("risk", RiskQuery, RiskView)
LIMIT_PREVIEW = console("limit_preview", LimitQuery, LimitPreview)
LEADERBOARD = console("leaderboard", LeaderboardQuery, LeaderboardView)
PERFORMANCE = console("performance", PerformanceQuery, PerformanceView, agents=True)
