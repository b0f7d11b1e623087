"""Asked before a cycle begins: can its providers be used, and are there such names?"""

from contracts.provider import ProvidersQuery, ProvidersView
from contracts.reach import ReachQuery, ReachView
from contracts.subjects.subject import ORCHESTRATOR, USERS, WEB, Class, Subject

PROVIDERS = Subject(
    Class.QUERY,
    "sentiment",
    "providers",
    ProvidersQuery,
    ProvidersView,
    (*USERS, WEB, ORCHESTRATOR),
)
REACH = Subject(Class.QUERY, "sentiment", "reach", ReachQuery, ReachView, (*USERS, ORCHESTRATOR))
