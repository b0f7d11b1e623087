"""Strategies that were tried, and the models trained for them, which one service keeps and another
one reads."""

from contracts.body import BodyPart, KeepPart, PartKept, PartQuery
from contracts.strategy_query import StrategiesPage, StrategiesQuery
from contracts.subjects.subject import ORCHESTRATOR, Class, Subject, console

KEEP_PART = Subject(
    Class.QUERY, ORCHESTRATOR, "keep_part", KeepPart, PartKept, ("strategy_training",)
)
BODY_PART = Subject(
    Class.QUERY, ORCHESTRATOR, "body_part", PartQuery, BodyPart, ("strategy_backtest",)
)
STRATEGIES = console("strategies", StrategiesQuery, StrategiesPage)
