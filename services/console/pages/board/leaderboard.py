"""The leaderboard: who did how well, drawn over the same sessions."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from contracts.leaderboard import (
    LeaderboardQuery,
    LeaderboardRow,
    LeaderboardView,
)
from libs.report import board as words
from services.console.http.queries import query_of
from services.console.http.requests import Desk
from services.console.pages.account.portfolio import moment
from services.console.pages.show import ShowPage
from services.console.views.board import leaderboard

DRAWN_MAX = 6
"""Rows on the chart, the best ones: more are not told apart."""


pages = APIRouter()


@pages.get("/leaderboard")
async def leaderboard_page(
    desk: Desk,
    show: ShowPage,
    query: Annotated[LeaderboardQuery, Depends(query_of(LeaderboardQuery, is_form=True))],
) -> Response:
    """The page with its chart."""
    it = await leaderboard.board(query, desk)
    drawn = _drawn(it.rows)
    return show(
        "leaderboard.html",
        it=it,
        board=words.board(it),
        notes=words.notes(it),
        hidden=words.hidden(it),
        own={one.key: one for one in it.rows if one.kind == "pipeline"},
        drawn=drawn,
        plot=_plot(it, drawn),
        chosen=frozenset(query.rows),
        everything=query.everything,
        has_several=bool(query.rows) or sum(one.kind == "pipeline" for one in it.rows) > 1,
    )


def _drawn(rows: Sequence[LeaderboardRow]) -> Sequence[LeaderboardRow]:
    """The compared pipelines, and what they are compared with; cash is the line at 0."""
    fit = [row for row in rows if row.compared and row.curve]
    pipelines = [row for row in fit if row.kind == "pipeline"][: DRAWN_MAX - 1]
    return [*pipelines, *(row for row in fit if row.kind == "buy_and_hold")]


def _plot(it: LeaderboardView, drawn: Sequence[LeaderboardRow]) -> dict[str, Any] | None:
    if not it.days or not any(row.kind == "pipeline" for row in drawn):
        return None
    lines = [
        {"name": row.key, "values": [round(float(value - 1) * 100, 2) for value in row.curve]}
        for row in drawn
    ]
    return {"x": [moment(day) for day in it.days], "unit": "%", "lines": lines}
