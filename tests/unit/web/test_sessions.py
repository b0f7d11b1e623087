"""A browser's session: begun by the token alone, for a time, or until it is ended."""

from dataclasses import dataclass, field

import pytest

from libs.web.problem import HttpProblem
from libs.web.sessions import CALLERS_MAX, SESSIONS_MAX, TRIES_MAX, TRIES_S, LoginSessions

TOKEN = "a-token-of-some-length"
LIFETIME_S = 600.0


@dataclass
class Clock:
    at: float = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Browser:
    """One browser: what it has been given."""

    clock: Clock = field(default_factory=Clock)
    cookie: str = ""

    def sessions(self, token: str = TOKEN, port: int = 8000) -> LoginSessions:
        return LoginSessions(lambda: token, port, LIFETIME_S, self.clock)

    def enter(self, sessions: LoginSessions, token: str = TOKEN, caller: str = "here") -> None:
        self.cookie = f"theme=x; {sessions.cookie}={sessions.begin(token, caller)}"


def test_the_token_begins_a_session_that_does_not_hold_it() -> None:
    browser = Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    assert sessions.holds(browser.cookie)
    assert TOKEN not in browser.cookie


@pytest.mark.parametrize("given", ["", "a-token-of-some-lengtH", "näher", TOKEN + "x"])
def test_another_word_begins_none(given: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        Browser().sessions().begin(given, "here")
    assert (refused.value.problem.status, refused.value.problem.code) == (401, "unauthorized")


def test_a_session_ends_by_itself() -> None:
    browser = Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    browser.clock.at += LIFETIME_S - 1
    assert sessions.holds(browser.cookie)
    browser.clock.at += 1
    assert not sessions.holds(browser.cookie)


def test_a_session_that_was_ended_is_refused_though_its_time_is_not_over() -> None:
    browser, other = Browser(), Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    other.enter(sessions)
    sessions.end(browser.cookie)
    assert not sessions.holds(browser.cookie)
    assert sessions.holds(other.cookie)


def test_no_session_outlives_the_console_ended_or_not() -> None:
    browser, other = Browser(), Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    other.enter(sessions)
    sessions.end(browser.cookie)
    after_a_restart = browser.sessions()
    assert not after_a_restart.holds(browser.cookie)
    assert not after_a_restart.holds(other.cookie)


def test_an_ended_session_stays_ended_however_many_begin_and_end_after_it() -> None:
    browser, other = Browser(), Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    sessions.end(browser.cookie)
    for _ in range(SESSIONS_MAX + 1):
        other.enter(sessions)
        sessions.end(other.cookie)
    assert not sessions.holds(browser.cookie)


def test_one_session_too_many_ends_the_oldest() -> None:
    first, last = Browser(), Browser()
    sessions = first.sessions()
    first.enter(sessions)
    for _ in range(SESSIONS_MAX):
        last.enter(sessions)
    assert (sessions.holds(first.cookie), sessions.holds(last.cookie)) == (False, True)


def test_two_desks_of_one_host_keep_their_sessions_apart() -> None:
    browser = Browser()
    browser.enter(browser.sessions())
    assert not browser.sessions(port=8001).holds(browser.cookie)


@pytest.mark.parametrize("value", ["", "x" * 43, "\u00fcnsigned", "a; b=c", '"'])
def test_a_cookie_that_was_made_up_is_none(value: str) -> None:
    browser = Browser()
    sessions = browser.sessions()
    browser.enter(sessions)
    assert not sessions.holds(f"{sessions.cookie}={value}")
    assert not sessions.holds(browser.cookie[:-1])


def test_who_is_wrong_too_often_is_told_to_wait_and_the_right_token_is_let_in_all_the_same() -> (
    None
):
    browser = Browser()
    sessions = browser.sessions()
    for _ in range(TRIES_MAX):
        with pytest.raises(HttpProblem):
            sessions.begin("a wrong token, again", "there")
    with pytest.raises(HttpProblem) as refused:
        sessions.begin("a wrong token, again", "there")
    assert refused.value.problem.status == 429
    assert 0 < int(refused.value.headers["Retry-After"]) <= TRIES_S + 1
    browser.enter(sessions, caller="there")
    assert sessions.holds(browser.cookie)

    browser.clock.at += TRIES_S
    with pytest.raises(HttpProblem) as refused:
        sessions.begin("a wrong token, again", "there")
    assert refused.value.problem.status == 401


def test_only_so_many_callers_are_remembered() -> None:
    sessions = Browser().sessions()
    for number in range(CALLERS_MAX + 5):
        with pytest.raises(HttpProblem):
            sessions.begin("a wrong token", str(number))
    assert len(sessions._tries) == CALLERS_MAX
