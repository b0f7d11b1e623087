"""Strategies that were tried, and the models trained for them, which the strategy
service keeps and reads."""

from contracts.body import BodyPart, KeepPart, PartKept, PartQuery
from contracts.strategy_query import StrategiesPage, StrategiesQuery
from contracts.subjects.subject import ORCHESTRATOR, Class, Subject, console

KEEP_PART = Subject(Class.QUERY, ORCHESTRATOR, "keep_part", KeepPart, PartKept, ("strategy",))
BODY_PART = Subject(Class.QUERY, ORCHESTRATOR, "body_part", PartQuery, BodyPart, ("strategy",))
STRATEGIES = console("strategies", StrategiesQuery, StrategiesPage, agents=True)
