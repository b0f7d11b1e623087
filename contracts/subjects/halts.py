"""The kill switch.

To the owner of orders itself: the switch works with every other part of the desk down.
"""

from contracts.halt import HaltAnswer, Halts, HaltsQuery, HaltTrading, ResumeTrading
from contracts.subjects.subject import REQUESTERS, Class, Subject, console

HALT = Subject(Class.REQUEST, "execution", "halt", HaltTrading, HaltAnswer, REQUESTERS)
RESUME = Subject(Class.REQUEST, "execution", "resume", ResumeTrading, HaltAnswer, REQUESTERS)
HALTS = console("halts", HaltsQuery, Halts)
