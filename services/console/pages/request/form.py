"""The form of a cycle: what was typed, the request that it stands for, and what is wrong, field by
field. Pure."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError

from contracts.cycle import DECISION, EXIT, PIPELINES_MAX, CycleRequest, RequestAnswer
from contracts.provider import ProviderStanding
from libs.facts import amounts
from libs.runtime.nearest import did_you_mean
from libs.runtime.wording import place_of, worded

OFFLINE = "rules"
"""The provider that every desk can use."""
FIELDS_MAX = 64
"""Names and values of one form; more is nobody's form."""
TEXT_CHARS_MAX = 10_000
"""Of one field, as much is read and shown again: a universe of the most tickers fits."""
KEY = re.compile(r"^page-[0-9a-f]{16}$")
PROVIDER, ACCOUNT = "provider", "account"
AS_OF, UNIVERSE = "as_of", "universe"
DAY = re.compile(r"\d{4}-\d\d-\d\d")
TEXTS = ("as_of", "universe", "timeout_s", "money", "tokens", "cost_usd", "approval")
WHOLE = ""
"""The place of what is wrong with no single field."""


@dataclass(frozen=True)
class CycleKind:
    """A kind of cycle that the form asks for, and the fields that it needs."""

    name: str
    title: str
    does: str
    asks: frozenset[str]


KINDS: Mapping[str, CycleKind] = {
    kind.name: kind
    for kind in (
        CycleKind(
            DECISION,
            "Decision",
            "Finds candidates, researches them, picks, checks the picks by the risk rules, orders.",
            frozenset({*TEXTS, PROVIDER}),
        ),
        CycleKind(
            EXIT,
            "Exit check",
            "Checks every position of an account by its exit rules, and sells what they say.",
            frozenset({AS_OF, "timeout_s", "approval"}),
        ),
        CycleKind(
            "report",
            "Daily report",
            "Writes an account's report of a session.",
            frozenset({AS_OF}),
        ),
    )
}


@dataclass(frozen=True)
class PipelineRow:
    """One pipeline as it was typed."""

    provider: str = OFFLINE
    account: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen in it: it asks for nothing."""
        return not self.provider and not self.account


@dataclass(frozen=True)
class Fault:
    """A problem of a field; `suggestion` would do in place of `typed`."""

    text: str
    typed: str = ""
    suggestion: str = ""

    @property
    def offer(self) -> str:
        """The suggestion as a button offers it: `Use Fri 2012-06-29`."""
        is_day = DAY.fullmatch(self.suggestion) is not None
        day = amounts.session(date.fromisoformat(self.suggestion)) if is_day else self.suggestion
        return f"Use {day}"

    def use(self, name: str) -> str:
        """The act that takes the suggestion, as the field's button sends it."""
        return f"use-{name}-{self.typed if name == UNIVERSE else ''} {self.suggestion}"


Faults = Mapping[str, Fault]
"""By field: that of the form, `provider-0` and `account-0` of the first row, WHOLE of all of it."""


@dataclass(frozen=True)
class Form:
    """A form as it was typed. `focus` is the field to go on with, the first wrong one if any."""

    key: str
    kind: CycleKind = KINDS[DECISION]
    rows: Sequence[PipelineRow] = (PipelineRow(),)
    texts: Mapping[str, str] = field(default_factory=dict)
    focus: str = ""

    def text(self, name: str) -> str:
        """The text of a field; empty where nothing was."""
        return self.texts.get(name, "")

    def asks(self, name: str) -> bool:
        """Whether the kind of cycle needs the field."""
        return name in self.kind.asks

    def request(self) -> CycleRequest:
        """The request that it stands for. Raises ValidationError."""
        body = _body(self)
        # Pressed twice it is one cycle; what was changed in between is another request.
        digest = hashlib.sha256(repr(sorted(body.items())).encode()).hexdigest()[:16]
        return CycleRequest.model_validate({**body, "idempotency_key": f"{self.key}-{digest}"})

    def acted(self, act: str) -> "Form":
        """The form after a button other than the one that starts the cycle: `add`, `remove-1`,
        `use-as_of- 2012-06-29`, `use-universe-APPL AAPL`. What is none changes nothing."""
        verb, _, rest = act.partition("-")
        if verb == "add" and len(self.rows) < PIPELINES_MAX:
            rows = (*self.rows, PipelineRow())
            return replace(self, rows=rows, focus=f"{PROVIDER}-{len(rows) - 1}")
        if verb == "remove" and rest.isdecimal() and int(rest) < len(self.rows) > 1:
            kept = [row for number, row in enumerate(self.rows) if number != int(rest)]
            return replace(self, rows=kept, focus="add")
        if verb == "use":
            return self._with(*rest.partition("-")[::2])
        return self

    def _with(self, name: str, text: str) -> "Form":
        """The form with a suggestion taken: `TYPED SUGGESTION`."""
        if name not in self.kind.asks:
            return self
        typed, _, better = text.partition(" ")
        if name == UNIVERSE:
            words = [better if word == typed else word for word in _listed(self.text(UNIVERSE))]
            better = ", ".join(words)
        return replace(self, texts={**self.texts, name: better}, focus=name)


def read(body: str, key: str) -> tuple[Form, str]:
    """The form that was sent, or that an address holds, and the button that was pressed. The key
    is that of the form, or `key` where it has none. Raises ValueError where it has too many fields.
    """
    pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    typed = [(name, text.strip()[:TEXT_CHARS_MAX]) for name, text in pairs]
    last = dict(typed)
    providers = [text for name, text in typed if name == PROVIDER]
    accounts = [text for name, text in typed if name == ACCOUNT]
    sent_key = last.get("key", "")
    kind = KINDS.get(last.get("kind", ""), KINDS[DECISION])
    form = Form(
        key=sent_key if KEY.fullmatch(sent_key) else key,
        kind=kind,
        rows=list(_rows(providers, accounts))[:PIPELINES_MAX] or (PipelineRow(),),
        texts={name: last[name] for name in TEXTS if last.get(name) and name in kind.asks},
    )
    return form, last.get("act", "")


def _rows(providers: Sequence[str], accounts: Sequence[str]) -> Iterator[PipelineRow]:
    """By position; a kind that has no choice of a provider has the one that every desk has."""
    for number in range(max(len(providers), len(accounts))):
        provider = providers[number] if number < len(providers) else "" if providers else OFFLINE
        yield PipelineRow(provider, accounts[number] if number < len(accounts) else "")


def _listed(text: str) -> Sequence[str]:
    return [word.upper() for word in re.split(r"[\s,]+", text) if word]


def _body(form: Form) -> dict[str, Any]:
    """The fields of the request: what is empty is left out, which leaves it to the desk."""
    body: dict[str, Any] = {"kind": form.kind.name, "pipelines": _pipelines(form)}
    if form.text(AS_OF):
        body[AS_OF] = form.text(AS_OF)
    if universe := _listed(form.text(UNIVERSE)):
        body[UNIVERSE] = universe
    if form.text("timeout_s"):
        body["timeout_s"] = form.text("timeout_s")
    if form.text("approval"):
        body["approval_required"] = True
    budgets: dict[str, Any] = {
        name: form.text(name).replace(",", "") for name in ("tokens", "cost_usd") if form.text(name)
    }
    if form.text("money"):
        budgets["money"] = {"amount": form.text("money").replace(",", "")}
    return {**body, "budgets": budgets} if budgets else body


def _pipelines(form: Form) -> Sequence[Mapping[str, str]]:
    """A row's pipeline is named after its provider; a further one of the same after its account."""
    seen: Counter[str] = Counter()
    pipelines = []
    for row in form.rows:
        if row.is_empty:
            continue
        name = row.account if seen[row.provider] and row.account else row.provider
        seen[row.provider] += 1
        account = {ACCOUNT: row.account} if row.account else {}
        pipelines.append({"name": name, PROVIDER: row.provider, **account})
    return pipelines


def numbers(form: Form) -> Sequence[int]:
    """The rows that pipelines are made of, in their order."""
    return [number for number, row in enumerate(form.rows) if not row.is_empty]


def typed_faults(form: Form) -> Faults:
    """The fields that cannot be read as what they should be; empty where all can be sent."""
    faults: dict[str, Fault] = {}
    if form.text(AS_OF) and DAY.fullmatch(form.text(AS_OF)) is None:
        # A bare number would be taken for seconds since 1970.
        faults[AS_OF] = Fault("Must be a date, such as 2012-06-29.")
    if not numbers(form):
        faults[f"{PROVIDER if form.asks(PROVIDER) else ACCOUNT}-0"] = Fault("Name at least one.")
    return faults


def faults_of(error: ValidationError, form: Form) -> Faults:
    """The problems of what was typed, each at its field."""
    faults: dict[str, Fault] = {}
    for problem in error.errors(include_url=False):
        place, text = place_of(problem["loc"], WHOLE), worded(problem)
        where = field_of(place, form)
        if where == WHOLE and place:
            text = f"{place}: {text}"
        faults.setdefault(where, Fault(_sentence(text)))
    return faults


def refusal_of(answer: RequestAnswer, form: Form) -> Faults:
    """Why the desk refuses the request, at the field that is to be another."""
    place = answer.field or WHOLE
    where = field_of(place, form)
    if place == "pipelines" and answer.given:
        rows = (n for n, row in enumerate(form.rows) if row.provider == answer.given)
        where = f"{PROVIDER}-{next(rows, 0)}"
    typed, suggestion = answer.given or "", answer.suggestion or ""
    fits = where == AS_OF or (where == UNIVERSE and typed)
    # A button asks what the sentence asks at its end.
    text = answer.message.removesuffix(did_you_mean(answer.suggestion)) if fits else answer.message
    return {where: Fault(_sentence(text), typed, suggestion if fits else "")}


def standing_faults(form: Form, standings: Sequence[ProviderStanding]) -> Faults:
    """The rows whose provider this desk cannot use: known before anything is sent."""
    if not form.asks(PROVIDER) or not standings:
        return {}
    by_name = {standing.name: standing for standing in standings}
    faults = {}
    for number, row in enumerate(form.rows):
        standing = by_name.get(row.provider)
        if row.provider and standing is None:
            text = f"this desk has no provider {row.provider}"
        elif standing is not None and not standing.usable:
            text = standing.why
        else:
            continue
        faults[f"{PROVIDER}-{number}"] = Fault(_sentence(text))
    return faults


def field_of(place: str, form: Form) -> str:
    """The form's field of a place in the request: `budgets.money.amount` is money."""
    first, *rest = place.split(".")
    if first == "budgets" and rest:
        first = rest[0]
    if first == "pipelines":
        rows = numbers(form)
        is_row = bool(rest) and rest[0].isdecimal() and int(rest[0]) < len(rows)
        number = rows[int(rest[0])] if is_row else (rows[-1] if rows else 0)
        of_account = rest[-1:] == [ACCOUNT] or not form.asks(PROVIDER) or not is_row
        return f"{ACCOUNT if of_account and form.rows[number].provider else PROVIDER}-{number}"
    if first == "approval_required":
        first = "approval"
    return first if first in form.kind.asks else WHOLE


def _sentence(text: str) -> str:
    end = "" if text.endswith((".", "?", "!")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"
