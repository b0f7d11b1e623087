"""The committee's words: a few ways to say why a fact speaks, chosen by the day. Pure.

None of them has a number in it: code writes those (docs/grounding.md). What is said by hash is
varied and always the same for the same day, ticker and fact.
"""

import hashlib
from collections.abc import Mapping, Sequence

from contracts.reasons import Speaks

LABEL = "scripted: "
"""Begins texts that no fact stands behind, so that nobody takes them for a model's judgement."""

FOR, AGAINST = Speaks.FOR, Speaks.AGAINST
WHYS: Mapping[tuple[str, Speaks], Sequence[str]] = {
    ("close", FOR): (
        "buyers still pay up for it",
        "the trend has not asked us to leave",
        "it holds above the line that mattered all year",
    ),
    ("close", AGAINST): (
        "it has lost the line that held it",
        "sellers have the upper hand",
        "no floor to lean on here",
    ),
    ("sma_50", FOR): ("the shorter trend leads the longer one", "momentum and trend agree"),
    ("sma_50", AGAINST): ("the shorter trend has turned first", "the averages have crossed down"),
    ("macd_histogram", FOR): ("momentum is building again", "the pullback has run out of sellers"),
    ("macd_histogram", AGAINST): ("momentum is fading", "each push up is weaker than the last"),
    ("change_63d_pct", FOR): (
        "a strong quarter tends to carry on",
        "the leaders are still leading",
    ),
    ("change_63d_pct", AGAINST): (
        "a quarter lost is a quarter of disappointed holders",
        "it lags what we could own instead",
    ),
    ("rsi_14", AGAINST): ("stretched: late buyers give it back first", "an extreme seldom lasts"),
    ("volatility_3m_pct", FOR): ("calm enough to carry a full position", "it sleeps well"),
    ("volatility_3m_pct", AGAINST): ("it swings too much for a large position",),
    ("below_high_pct", AGAINST): ("holders above us want out at break-even",),
    ("pe_ratio", FOR): ("growth is not paid for yet", "cheap against its own record"),
    ("pe_ratio", AGAINST): (
        "much of the good news is paid for",
        "no room for a miss at this price",
    ),
    ("profit_growth_pct", FOR): (
        "earnings catch up with the price",
        "profits pull the price along",
    ),
    ("profit_growth_pct", AGAINST): ("profits do not confirm the price",),
    ("profit_margin_pct", FOR): ("pricing power shows in the margin", "it keeps what it earns"),
    ("debt_to_equity", FOR): ("nobody stands before the holders",),
    ("debt_to_equity", AGAINST): ("lenders are served first",),
    ("technical_score", FOR): ("the chart seat votes for it", "trend and momentum line up"),
    ("technical_score", AGAINST): ("the chart seat is not convinced",),
    ("fundamental_score", FOR): ("the value seat agrees", "the figures carry the story"),
    ("fundamental_score", AGAINST): ("the value seat dissents",),
    ("sentiment", FOR): ("the news flow is with us",),
    ("sentiment", AGAINST): ("the news flow is against us",),
    ("measured_risk", AGAINST): ("size it for a bad week",),
    ("risk_score", AGAINST): ("size it for a bad week", "the risk seat asks for a near stop"),
    ("quant_signal", FOR): ("the quant still likes it",),
    ("quant_signal", AGAINST): ("the quant has turned",),
    ("review_due", AGAINST): ("its time is up and the reason is gone",),
}
"""By the quantity of a reason's fact, and whether it speaks for the share or against it."""
NEWS: Mapping[Speaks, Sequence[str]] = {
    FOR: ("the demand story holds", "this is what holders waited for", "it changes next quarter"),
    AGAINST: (
        "it takes away the reason to own it",
        "rarely the last bad news",
        "margins will feel it",
    ),
}
OPENINGS: Sequence[str] = (
    "The account and the present prices first: without them this would be an opinion.",
    "Before anything is proposed: what is held, and what it costs now.",
    "Let us see the prices. Memory is no evidence.",
)
SECOND_LOOKS: Sequence[str] = (
    "Prices and figures are in. What was written about them?",
    "That is the chart and the books; the news may explain the rest.",
)
CLOSINGS: Sequence[str] = (
    "That is enough to answer; what is absent is said to be absent.",
    "Everything that was asked for has answered or said why it cannot.",
)
MARKET: Mapping[str, Sequence[str]] = {
    "buy": (
        "strength is bought, the stop decides the size",
        "one seat against, two in favour: buy what leads",
        "the leaders pulled ahead, so they get the money",
    ),
    "sell": (
        "what lost its reason is sold, cash is a position too",
        "the tape has turned: less of what fell behind",
    ),
    "both": ("from what lags into what leads", "the reason moved, so the money moves with it"),
    "none": (
        "nothing here is worth a stop today",
        "all good ideas are owned already; patience",
        "the seats disagree, so nothing is bought",
    ),
}
LOOSE = (
    "we would not be surprised by another 15 percent from here",
    "we see 20 percent more before the summer",
    "fair value is at least 10 percent higher",
)
"""Numbers that no fact has. They are here so that it can be seen how such a one is marked."""


def chosen(lines: Sequence[str], *key: object) -> str:
    """One of the lines, the same for the same key in every process."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return lines[int.from_bytes(digest[:4], "big") % len(lines)]


def why(quantity: str, speaks: Speaks, *key: object) -> str:
    """A few words on a fact of this quantity; none where there is nothing to add to it."""
    lines = WHYS.get((quantity, speaks), ())
    return chosen(lines, quantity, speaks.value, *key) if lines else ""
