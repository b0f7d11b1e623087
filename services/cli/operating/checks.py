"""One finding of `deskbus doctor`: what was looked at, what was seen, what to do."""

from enum import StrEnum

from pydantic import BaseModel


class CheckVerdict(StrEnum):
    """How a check came out; `off` is no problem, only not there now."""

    OK = "ok"
    OFF = "off"
    PROBLEM = "problem"


class DoctorCheck(BaseModel):
    """One line: what was looked at, what was seen, what to do."""

    name: str
    verdict: CheckVerdict
    said: str
    todo: str = ""


def ok(name: str, finding: str) -> DoctorCheck:
    """All is well."""
    return DoctorCheck(name=name, verdict=CheckVerdict.OK, said=finding)


def off(name: str, finding: str, todo: str = "") -> DoctorCheck:
    """Something is not there, which is no problem."""
    return DoctorCheck(name=name, verdict=CheckVerdict.OFF, said=finding, todo=todo)


def problem(name: str, finding: str, todo: str = "") -> DoctorCheck:
    """Something is wrong."""
    return DoctorCheck(name=name, verdict=CheckVerdict.PROBLEM, said=finding, todo=todo)
