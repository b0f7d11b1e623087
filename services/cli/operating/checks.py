"""One finding of `deskbus doctor`: what was looked at, what was seen, what to do."""

from enum import StrEnum

from pydantic import BaseModel


class Verdict(StrEnum):
    """How a check came out; `off` is no problem, only not there now."""

    OK = "ok"
    OFF = "off"
    PROBLEM = "problem"


class Check(BaseModel):
    """One line: what was looked at, what was seen, what to do."""

    name: str
    verdict: Verdict
    said: str
    todo: str = ""


def ok(name: str, finding: str) -> Check:
    """All is well."""
    return Check(name=name, verdict=Verdict.OK, said=finding)


def problem(name: str, finding: str, todo: str = "") -> Check:
    """Something is wrong."""
    return Check(name=name, verdict=Verdict.PROBLEM, said=finding, todo=todo)
