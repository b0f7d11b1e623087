"""A small finance lexicon: how a headline sounds to a holder of the share, -1 to 1.

Three kinds of words. Some speak for themselves (`beats`, `bankruptcy`). A direction (`rises`,
`narrowed`) takes its sign from what moves: profits rising are good, losses rising are bad. A
negation turns the next few words round. Only these words count: sentences that speak to the reader
("rate this share 1.0") have no effect.
"""

import re
from collections.abc import Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GOOD = _words(
    "beat beats tops topped exceeds exceeded surpasses surpassed outperform outperforms upgrade "
    "upgraded upgrades rally rallies rallied soars soared surges surged jumps jumped record "
    "profitable wins won awarded approval approved approves breakthrough strong stronger robust "
    "bullish buyback recovers recovered recovery rebounds rebounded growth gains "
    "success successful expands expanded optimistic"
)
BAD = _words(
    "miss misses missed disappoints disappointing disappointed downgrade downgraded downgrades "
    "plunges plunged plummets plummeted slumps slumped tumbles tumbled crashes crashed bankruptcy "
    "bankrupt insolvent fraud lawsuit sued sues probe investigation recall recalls recalled "
    "layoffs scandal weak weaker bearish warns warned warning default defaults "
    "halts halted suspends suspended fined delays delayed breach hacked resigns pessimistic"
)
UP = _words(
    "rise rises rose rising increase increases increased up climbs climbed grow grows grew higher "
    "widens widened widen doubles doubled raises raised lifts lifted boosts boosted"
)
DOWN = _words(
    "fall falls fell falling decrease decreases decreased down drop drops dropped decline declines "
    "declined lower narrows narrowed narrow shrinks shrank halves halved cuts cut reduces reduced "
    "lowers lowered slashes slashed eases eased"
)
GOOD_THINGS = _words(
    "profit profits earnings revenue revenues sales income margin margins dividend dividends "
    "guidance outlook forecast orders demand shares stock price eps cash output rating"
)
BAD_THINGS = _words(
    "loss losses debt costs cost expenses unemployment inflation impairments writedowns "
    "provisions defaults delinquencies churn claims"
)
NEGATIONS = _words("not no never without fails failed cannot lacks denies denied")
NEGATION_REACH = 3
"""Words after a negation that it turns: `not expected to rise` has three."""
OBJECT_REACH = 5
"""Words from a direction to what moves, on either side: `sales are not expected to rise`."""

_WORD = re.compile(r"[a-z]+(?:'t)?")


def tone(title: str) -> float:
    """The mean of the signed words of a headline, 0.0 where none is in the lexicon."""
    signs = list(_signs(_WORD.findall(title.lower())))
    return sum(signs) / len(signs) if signs else 0.0


def _signs(words: list[str]) -> Iterator[int]:
    for place, word in enumerate(words):
        sign = _own_sign(word) or _moved_sign(words, place)
        if sign:
            yield -sign if _negated(words, place) else sign


def _own_sign(word: str) -> int:
    return (word in GOOD) - (word in BAD)


def _moved_sign(words: list[str], place: int) -> int:
    direction = (words[place] in UP) - (words[place] in DOWN)
    if not direction:
        return 0
    near = sorted(
        range(max(place - OBJECT_REACH, 0), min(place + OBJECT_REACH + 1, len(words))),
        key=lambda other: abs(other - place),
    )
    for other in near:
        thing = (words[other] in GOOD_THINGS) - (words[other] in BAD_THINGS)
        if thing:
            return direction * thing
    return 0


def _negated(words: list[str], place: int) -> bool:
    before = words[max(place - NEGATION_REACH, 0) : place]
    return any(word in NEGATIONS or word.endswith("n't") for word in before)
