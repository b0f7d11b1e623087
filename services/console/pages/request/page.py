"""The page that asks for a cycle. The form is sent as it is, so it works without a script too: with
one it is sent in the background, and only what has changed is shown."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from contracts.cycle import PIPELINES_MAX, Budgets
from contracts.provider import ProvidersQuery, ProviderStanding
from contracts.subjects.preflight import PROVIDERS
from libs.market.choice import is_bundled
from libs.postgres.pool import DatabaseUnavailable
from libs.runtime.errors import DeskError
from services.console.http.problems import REFUSALS
from services.console.http.requests import PAGE_S, Desk, DeskAccess
from services.console.listings.cycles import providers_of
from services.console.pages.request import form as forms
from services.console.pages.request.form import WHOLE, Fault, Faults, Form
from services.console.pages.show import ShowPage

PATH = "/cycles/new"


@dataclass(frozen=True)
class FormRefusal:
    """Why there is no cycle yet."""

    status: HTTPStatus
    faults: Faults


pages = APIRouter()


@pages.get(PATH)
async def request_page(desk: Desk, show: ShowPage, request: Request) -> Response:
    """The form, empty or with what an address says."""
    form, _ = _read(request.url.query)
    return await _shown(desk, show, form, {})


@pages.post(PATH)
async def send_form(desk: Desk, show: ShowPage, request: Request) -> Response:
    """What becomes of the form."""
    form, act = _read((await request.body()).decode(errors="replace"))
    if act:
        return await _shown(desk, show, form.acted(act), {})
    answer = await _asked(desk, form)
    if isinstance(answer, UUID):
        return RedirectResponse(f"/cycles/{answer}", HTTPStatus.SEE_OTHER)
    return await _shown(desk, show, form, answer.faults, answer.status)


async def _shown(
    desk: DeskAccess,
    show: ShowPage,
    form: Form,
    faults: Faults,
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    standings = await _standings(desk)
    every = {**forms.standing_faults(form, standings), **faults}
    if status != HTTPStatus.OK and not form.focus:
        form = replace(form, focus=_first(form, every))
    return show(
        "cycle_request.html",
        status,
        form=form,
        faults=every,
        kinds=forms.KINDS.values(),
        providers=_offered(desk, standings, form),
        unusable=[provider for provider in standings if not provider.usable],
        accounts=await _accounts(desk),
        rows_max=PIPELINES_MAX,
        budgets=Budgets(),
        limits=desk.settings.cycles,
        bundled=is_bundled(desk.settings),
    )


def _read(text: str) -> tuple[Form, str]:
    key = f"page-{secrets.token_hex(8)}"
    try:
        return forms.read(text, key)
    except ValueError:  # more fields than any form has
        return Form(key), ""


async def _asked(desk: DeskAccess, form: Form) -> UUID | FormRefusal:
    """The cycle that was begun, or why there is none."""
    if faults := forms.typed_faults(form):
        return FormRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, faults)
    try:
        answer = await desk.requests.ask_cycle(form.request())
    except ValidationError as error:
        return FormRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, forms.faults_of(error, form))
    except DeskError as error:
        # Its answer may have been lost on the way.
        text = f"{error.message}. Pressed again it is one cycle; what you typed is still here."
        return FormRefusal(HTTPStatus.SERVICE_UNAVAILABLE, {WHOLE: Fault(text)})
    if answer.outcome == "accepted" and answer.cycle_id is not None:
        return answer.cycle_id
    status = REFUSALS.get(answer.code or "", HTTPStatus.UNPROCESSABLE_ENTITY)
    return FormRefusal(status, forms.refusal_of(answer, form))


async def _standings(desk: DeskAccess) -> Sequence[ProviderStanding]:
    """The providers as the desk has them; none where nobody who knows answers in time."""
    try:
        return (await desk.requests.ask(PROVIDERS, ProvidersQuery(), PAGE_S)).providers
    except DeskError:
        return ()


async def _accounts(desk: DeskAccess) -> Sequence[str]:
    """Names to choose from; without the database they are typed."""
    try:
        return await desk.store.accounts()
    except DatabaseUnavailable:
        return ()


def _offered(
    desk: DeskAccess, standings: Sequence[ProviderStanding], form: Form
) -> Mapping[str, str]:
    """The providers of the choice, those that can be used first, provider with the words behind its
    name; what was typed is one of them, whatever it is."""
    usable = {provider.name: "" for provider in standings if provider.usable}
    others = {provider.name: "cannot be used here" for provider in standings if not provider.usable}
    known = {**usable, **others} or dict.fromkeys(providers_of(desk.settings), "")
    words = "unknown here" if standings else ""
    typed = {row.provider: words for row in form.rows if row.provider not in {"", *known}}
    return {**known, **typed}


def _first(form: Form, faults: Faults) -> str:
    """The first field that is wrong, in the order in which they stand."""
    rows = (
        f"{name}-{n}" for n in range(len(form.rows)) for name in (forms.PROVIDER, forms.ACCOUNT)
    )
    order = ("as_of", "universe", *rows, "timeout_s", "money", "tokens", "cost_usd", "approval")
    return next((name for name in order if name in faults), "")
