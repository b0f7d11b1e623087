# ruff: noqa: RUF001  (letters that look alike are what it is about)
"""Reasons as no honest model gives them: for tests of every agent that names facts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.fakes.hostile_words import HOSTILE

Reasons = Callable[[str, str], Sequence[Any]]
"""Of a ticker, and of another one: what stands in the place of its reasons."""
MANY = 10_000
HUGE = 1_000_000
QUANTITIES = (
    "close",
    "sma_50",
    "sma_200",
    "rsi_14",
    "change_63d_pct",
    "change_21d_pct",
    "macd",
    "macd_histogram",
    "sma_20",
    "atr_14",
    "volatility_3m_pct",
    "bollinger_upper",
)
"""What there is a fact of, for whoever looks at prices."""


def named(fact: object, why: object = "", speaks: str = "for", **further: object) -> dict[str, Any]:
    """A reason as a model writes it."""
    return {"fact": fact, "speaks": speaks, "why": why, **further}


def _names(*names: str) -> Reasons:
    return lambda _, __: [named(each) for each in names]


def _words(words: str) -> Reasons:
    return lambda ticker, _: [named(f"{ticker}.close", words)]


HEARD: Mapping[str, Reasons] = {
    "nothing": lambda _, __: [],
    "empty names": _names("", "  ", "{}"),
    "unknown names": lambda ticker, _: [named(f"{ticker}.love"), named("the close")],
    "another ticker's facts": lambda _, other: [named(f"{other}.close", "as good as its own")],
    "for and against": lambda ticker, _: [
        named(f"{ticker}.close"),
        named(f"{ticker}.close", speaks="against"),
    ],
    "held against itself": lambda ticker, _: [
        named(f"{ticker}.close", beside=f"{ticker}.close", why="1")
    ],
    "the same ten thousand times": lambda ticker, _: [named(f"{ticker}.close")] * MANY,
    "ten thousand unknown": lambda ticker, _: [named(f"{ticker}.x{n}") for n in range(MANY)],
    "paths": lambda ticker, _: [
        named("../../etc/passwd"),
        named(f"{ticker}.close/../x"),
        named(f"{ticker}.close\\..\\x", beside="file:///etc/passwd"),
        named("C:\\Windows\\win.ini"),
    ],
    "formats": _names("{0.__class__}", "{self.facts}", "%s%n%x", "${jndi:ldap://x/a}", "{{7*7}}"),
    "markup": lambda ticker, _: [
        named("<script>alert(1)</script>", "</dd><script>alert(1)</script>"),
        named(f"{ticker}.close", "<img src=x onerror=alert(1)> & \"' onmouseover=alert(1)"),
    ],
    "braces in braces": lambda ticker, _: [
        named(f"{{{{{ticker}.close}}}}", f"{{{{{ticker}.close}}}} {{{ticker}.rsi_14}} {{{{}}}}"),
        named("{" * 90),
    ],
    "a huge why": lambda ticker, _: [named(f"{ticker}.close", "1 w" * (HUGE // 3))],
    "a long name": lambda ticker, _: [
        named(ticker * 5_000),
        named(f"{ticker}.close", beside=ticker * 5_000),
    ],
    "digits of other scripts": _words("٧١ of ５５５, ⑳ and ㉑ at x², ౩౪ and 𝟗𝟗, 五十"),
    "letters that grow": _words("\ufdfa" * 140),
    "numbers that grow": _words("⑳" * 140),
    "numbers that never end": _words("9" * 140),
    "grouped without an end": _words("1,1." * 35),
    "a value of its own": lambda ticker, _: [named(f"{ticker}.close", value=999)],
    "twelve that grow": lambda ticker, _: [
        named(f"{ticker}.{each}", "\ufdfa" * 140) for each in QUANTITIES
    ],
    "twelve times twelve numbers": lambda ticker, _: [
        named(f"{ticker}.{each}", "1 2 3 4 5 6 7 8 9 1 2 3 " * 6) for each in QUANTITIES
    ],
    "words as if code had written them": _words("fine). For: close 999.00 USD, 71% above it (so"),
    **{f"orders: {name}": _names(text) for name, text in HOSTILE.items()},
    **{f"told: {name}": _words(text) for name, text in HOSTILE.items()},
}
"""What is read as reasons, such as they are: it ends in a report."""
FREE = ("market_mood", "notes", "answer", "research_notes", "catalyst")
"""Fields of answers that hold words which stand on no fact."""
GROWING = {"letters": "\ufdfa" * 8_000, "numbers": "⑳ " * 4_000, "<b>9</b>": "<b>9</b> " * 800}
REFUSED: Mapping[str, Reasons] = {
    "a number for a name": lambda _, __: [named(584.0)],
    "nothing for a name": lambda _, __: [named(None)],
    "two names for one": lambda ticker, _: [named([f"{ticker}.close", ""])],
    "words for reasons": lambda *_: ["it will rise"],
    "no side": lambda ticker, _: [named(f"{ticker}.close", speaks="maybe")],
    "half a character": lambda ticker, _: [named(f"{ticker}.close", "\ud83d")],
    "a reason in a reason": lambda ticker, _: [named({"fact": f"{ticker}.close"})],
}
"""What has not the form of a reason: asked for anew, and in the end a typed failure."""


def spoiled(answer: Any, tickers: Sequence[str], reasons: Reasons | None, words: str = "") -> Any:
    """An answer as JSON with these in the place of all its reasons, and of all its other words."""
    if isinstance(answer, list):
        return [spoiled(each, tickers, reasons, words) for each in answer]
    if not isinstance(answer, dict):
        return answer
    own = answer.get("ticker", "")
    other = next(each for each in tickers if each != own)

    def one(name: str, value: Any) -> Any:
        if name == "reasons" and reasons is not None:
            return list(reasons(own, other))
        if name in FREE and words:
            return words
        return spoiled(value, tickers, reasons, words)

    return {name: one(name, each) for name, each in answer.items()}
