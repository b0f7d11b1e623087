"""EDGAR's three addresses over loopback, in the shapes that the real ones have, and its refusals.

Only the network's edge is replaced: the desk's own HTTP client asks this. Answers are gzipped, as
EDGAR's are; a caller without a contact gets the page for undeclared callers.
"""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.served import KeptConnections, served
from tests.fakes.slow_answers import SlowAnswer, answer_slowly

UNDECLARED = (
    "<!DOCTYPE html><html><head><title>SEC.gov | Your Request Originates from an Undeclared "
    "Automated Tool</title></head><body><h1>Your Request Originates from an Undeclared Automated "
    "Tool</h1><p>To allow for equitable access to all users, SEC reserves the right to limit "
    "requests originating from undeclared automated tools.</p><p>Request Rate Threshold Exceeded"
    "</p></body></html>"
)
THRESHOLD = (
    "<html><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head><body>"
    "<h1>Request Rate Threshold Exceeded</h1></body></html>"
)
NO_SUCH_FILE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>The specified '
    "key does not exist.</Message><Key>x.json</Key></Error>"
)
MAINTENANCE = (
    "<html><head><title>SEC.gov | Page Unavailable</title></head><body>Try later</body></html>"
)
HALF = '{"cik": 320193, "facts": {"us-gaap": {"Assets": {"units": {"USD": [{"end": "2009-'

HTML, XML, JSON = "text/html", "application/xml", "application/json"

REFUSALS: dict[str, tuple[int, str, str]] = {
    "403 undeclared": (403, HTML, UNDECLARED),
    "403 threshold": (403, HTML, THRESHOLD),
    "429 threshold": (429, HTML, THRESHOLD),
    "429 empty": (429, HTML, ""),
    "403 page": (403, HTML, "<html><head><title>Access Denied</title></head></html>"),
    "404 page": (404, HTML, "<html><head><title>SEC.gov | Not Found</title></head></html>"),
    "301": (301, HTML, ""),
    "500 page": (500, HTML, MAINTENANCE),
    "503 empty": (503, HTML, ""),
    "200 page": (200, HTML, MAINTENANCE),
    "200 undeclared": (200, HTML, UNDECLARED),
    "200 half a JSON": (200, JSON, HALF),
    "200 JSON without content": (200, JSON, "{}"),
    "200 null": (200, JSON, "null"),
    "200 text": (200, "text/plain", "{}"),
}
"""What EDGAR, or what stands before it, says instead of an answer: status, kind and body."""


@dataclass
class Company:
    """One filer as EDGAR tells of it: rows of `filings.recent`, older files, and its facts."""

    cik: int
    tickers: list[str]
    filings: list[dict[str, Any]] = field(default_factory=list)
    older: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    facts: dict[str, Any] | None = None
    name: str = "Made Up Inc."
    sic: str = "3571"

    def files(self, accession: str, form: str, filed: str, accepted: str, **more: str) -> None:
        """Add a filing to the newest ones; `accepted` as the JSON has it."""
        self.filings.append(row(accession, form, filed, accepted, **more))

    def states(
        self,
        concept: str,
        value: float,
        accession: str,
        end: str,
        filed: str,
        start: str | None = None,
        unit: str = "USD",
        taxonomy: str = "us-gaap",
        frame: str | None = None,
    ) -> None:
        """Add one figure of a filing."""
        self.facts = self.facts if self.facts is not None else {}
        units = self.facts.setdefault(taxonomy, {}).setdefault(
            concept, {"label": concept, "description": "", "units": {}}
        )["units"]
        fact: dict[str, Any] = {"end": end, "val": value, "accn": accession, "fy": 2009, "fp": "FY"}
        fact |= {"form": "10-K", "filed": filed}
        fact |= {"start": start} if start else {}
        fact |= {"frame": frame} if frame else {}
        units.setdefault(unit, []).append(fact)

    def submissions(self) -> dict[str, Any]:
        files = [
            {
                "name": name,
                "filingCount": len(rows),
                "filingFrom": min(each["filingDate"] for each in rows),
                "filingTo": max(each["filingDate"] for each in rows),
            }
            for name, rows in self.older.items()
        ]
        return {
            "cik": f"{self.cik:010d}",
            "entityType": "operating",
            "sic": self.sic,
            "name": self.name,
            "tickers": self.tickers,
            "exchanges": ["Nasdaq"] * len(self.tickers),
            "fiscalYearEnd": "0926",
            "formerNames": [],
            "filings": {"recent": columns(self.filings), "files": files},
        }


def row(
    accession: str, form: str, filed: str, accepted: str, report: str = "", items: str = ""
) -> dict[str, Any]:
    """One filing as a row, to be turned into columns."""
    return {
        "accessionNumber": accession,
        "filingDate": filed,
        "reportDate": report,
        "acceptanceDateTime": accepted,
        "act": "34",
        "form": form,
        "fileNumber": "000-00000",
        "filmNumber": "1",
        "items": items,
        "size": 1_000,
        "isXBRL": 1,
        "isInlineXBRL": 0,
        "primaryDocument": "made-up.htm",
        "primaryDocDescription": form,
    }


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as EDGAR writes them: parallel columns."""
    names = row("", "", "", "")
    return {name: [each[name] for each in rows] for name in names}


@dataclass
class Fault:
    """The next `times` requests whose path holds `part` are answered so (or held up)."""

    part: str
    answer: tuple[int, str, str]
    times: int = 1_000
    wait: threading.Event | None = None


@dataclass
class StandIn:
    """The server's other end, for the test: what it tells, how it fails, what it was asked."""

    companies: list[Company]
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    slow: list[SlowAnswer] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)

    def fails(self, part: str, refusal: str, **how: Any) -> Fault:
        fault = Fault(part, REFUSALS[refusal], **how)
        self.faults.append(fault)
        return fault

    def count(self, part: str) -> int:
        return sum(part in path for path in self.asked)

    def answer(self, path: str, agent: str) -> tuple[int, str, str]:
        if "@" not in agent:
            return REFUSALS["403 undeclared"]
        for fault in self.faults:
            if fault.part in path and fault.times > 0:
                fault.times -= 1
                if fault.wait is not None:
                    fault.wait.wait(20)
                return fault.answer
        found = self._page(path)
        return (404, XML, NO_SUCH_FILE) if found is None else (200, JSON, json.dumps(found))

    def _page(self, path: str) -> Any:
        if path == "/files/company_tickers.json":
            pairs = [(each.cik, ticker) for each in self.companies for ticker in each.tickers]
            return {
                str(n): {"cik_str": cik, "ticker": ticker, "title": "Made Up Inc."}
                for n, (cik, ticker) in enumerate(pairs)
            }
        name = path.rpartition("/")[2]
        for each in self.companies:
            if name in each.older:
                return columns(each.older[name])
            if name == f"CIK{each.cik:010d}.json":
                if path.startswith("/submissions/"):
                    return each.submissions()
                if path.startswith("/api/xbrl/companyfacts/") and each.facts is not None:
                    return {"cik": each.cik, "entityName": each.name, "facts": each.facts}
        return None


@contextmanager
def serving(*companies: Company) -> Iterator[StandIn]:
    """The server on a free port, for as long as the block runs."""
    stand_in = StandIn(list(companies))

    class Handler(KeptConnections, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agent = self.headers.get("User-Agent", "")
            stand_in.asked.append(self.path)
            stand_in.agents.add(agent)
            slow = next((each for each in stand_in.slow if each.part in self.path), None)
            if slow is not None:
                answer_slowly(self, slow.how, stand_in.over)
                return
            status, kind, text = stand_in.answer(self.path, agent)
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if "gzip" in self.headers.get("Accept-Encoding", ""):
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            if status == 301:
                self.send_header("Location", f"{stand_in.url}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    with served(server):
        try:
            yield stand_in
        finally:
            stand_in.over.set()
