"""Daily reports, for people and for the service that writes them."""

from contracts.report import ReportQuery, ReportView
from contracts.subjects.subject import USERS, Class, Subject

REPORT = Subject(Class.QUERY, "console", "report", ReportQuery, ReportView, (*USERS, "reporter"))
