"""A finance lexicon: how a headline sounds to a holder of the share, -1 to 1. Pure.

Four kinds of words. Some speak for themselves (`beats`, `bankruptcy`), and so do a few phrases
(`profit warning`). A direction (`rises`, `narrowed`) takes its sign from what moves: profits rising
are good, losses rising are bad, a direction of nothing in the lists is silent. A negation turns the
next few words round (`not expected to rise`), or those before it (`strike averted`). Only these
words count: sentences that speak to the reader ("rate this share 1.0") have no effect.

The lists are our own. docs/digest.md says what their quality is and how it was measured.
"""

import re
from collections.abc import Iterator

_CLOSED_SYLLABLE = re.compile(r"^[^aeiou]*[aeiou][bgmnpt]$")
_HISSING = ("s", "sh", "ch", "x", "z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _verbs(text: str) -> frozenset[str]:
    """The regular forms of each verb: slump, slumps, slumped, slumping."""
    return frozenset(form for verb in text.split() for form in _forms(verb))


def _forms(verb: str) -> tuple[str, ...]:
    if verb.endswith("e"):
        return (verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing")
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return (verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing")
    stem = verb + verb[-1] if _CLOSED_SYLLABLE.match(verb) else verb
    third = f"{verb}es" if verb.endswith(_HISSING) else f"{verb}s"
    return (verb, third, f"{stem}ed", f"{stem}ing")


GOOD = _verbs(
    "beat top exceed surpass outperform outpace upgrade rally soar surge jump skyrocket award "
    "approve recover rebound expand improve strengthen accelerate boom thrive succeed resume "
    "clear outshine"
) | _words(
    "profitable profitability wins won win winning approval breakthrough strong stronger strongest "
    "strongly robust solid bullish buyback buybacks recovery rebound growth gain gains gained "
    "success successful successfully optimistic upbeat better best booming boom brisk resilient "
    "favourable favorable lucrative milestone"
)
BAD = _verbs(
    "miss disappoint downgrade plunge plummet slump tumble crash sink underperform sue probe "
    "recall warn default halt suspend fine delay hack resign worsen weaken deteriorate slow "
    "struggle stall collapse shut block fail lack hurt harm lose steal cancel withdraw scrap "
    "violate allege indict accuse stumble slide"
) | _words(
    "bankruptcy bankrupt insolvent insolvency fraud lawsuit lawsuits investigation raid layoffs "
    "layoff redundancies scandal weak weaker weakest weakness bearish warning warnings breach "
    "hackers pessimistic gloomy worse worst slowdown downturn recession shortage shortages "
    "shortfall strike strikes accident lost loses sank slid stole stolen failure setback penalty "
    "antitrust misconduct outage turmoil crisis woes doubt doubts fears"
)
UP = _verbs(
    "rise increase climb grow widen double triple raise lift boost hike jump surge soar balloon "
    "mount swell"
) | _words("rose risen grew grown up higher high highest above upward record wider")
DOWN = _verbs(
    "fall decrease drop decline narrow shrink halve cut reduce lower slash ease trim dip slip "
    "tumble plunge slump slide sink ebb"
) | _words("fell fallen down lower low lowest below downward shrank shrunk narrower sank slid")
GOOD_THINGS = _words(
    "profit profits earnings revenue revenues sales income margin margins dividend dividends "
    "guidance outlook forecast forecasts orders demand share shares stock price prices eps cash "
    "output rating target bookings deposits turnover ebitda jobs backlog deliveries production "
    "subscribers users traffic stake"
)
BAD_THINGS = _words(
    "loss losses debt debts cost costs expense expenses unemployment inflation impairment "
    "impairments writedowns writedown provisions provision defaults delinquencies churn claims "
    "deficit liabilities arrears leverage complaints"
)
NEGATIONS = _words(
    "not no never without fails failed fail cannot lacks denies denied deny avoid avoids avoided "
    "averts averted dismisses dismissed rejects settles settled resolves resolved ends ended"
)
NEGATIONS_AFTER = _words("averted avoided dismissed resolved settled dropped ends ended")
"""Those that end what stands before them: `strike averted`, `lawsuit dismissed`."""
NEGATION_REACH = 3
"""Words after a negation that it turns: `not expected to rise` has three."""
NEGATION_REACH_BACK = 4
OBJECT_REACH = 5
"""Words from a direction to what moves, on either side: `sales are not expected to rise`."""

_GOOD_PHRASE, _BAD_PHRASE = "_good_", "_bad_"
_PHRASES = (
    (
        re.compile(
            r"\b(?:(?:swings?|swung|back|returns?|returned) to (?:a |an )?(?:\w+ )?profit"
            r"|ahead of (?:schedule|plan|expectations|forecasts?|estimates)"
            r"|above (?:expectations|forecasts?|estimates)|sold out|stake building"
            r"|pass(?:es|ed) (?:\w+ )?stress test|(?:meets?|met) (?:its )?(?:main|primary) \w+"
            r"|takeover (?:offer|bid)|cost savings|signs? (?:its |a )?(?:\w+ ){0,2}"
            r"(?:deal|contract|customer)|in favou?r of)\b"
        ),
        _GOOD_PHRASE,
    ),
    (
        re.compile(
            r"\b(?:(?:swings?|swung|falls?|fell) to (?:a |an )?(?:\w+ )?loss"
            r"|profit warning|(?:fell|falls?|fall) short|behind (?:schedule|plan)"
            r"|below (?:expectations|forecasts?|estimates)|wr(?:ites?|ote|itten) (?:down|off)"
            r"|going concern|chapter 11|job cuts|class action|hit by|in the red)\b"
        ),
        _BAD_PHRASE,
    ),
)
_WORD = re.compile(r"[a-z]+(?:'t)?|_good_|_bad_")


def tone(title: str) -> float:
    """The mean of the signed words of a headline, 0.0 where none is in the lexicon."""
    signs = list(_signs(_WORD.findall(_with_phrases(title))))
    return sum(signs) / len(signs) if signs else 0.0


def _with_phrases(title: str) -> str:
    # "per share" is a unit: it must not be taken for what moves.
    text = title.lower().replace("_", " ").replace("\u2019", "'").replace(" per share", "")
    for pattern, token in _PHRASES:
        text = pattern.sub(token, text)
    return text


def _signs(words: list[str]) -> Iterator[int]:
    for place, word in enumerate(words):
        # What moves decides first: a slump in costs is good, a slump alone is not.
        sign = _moved_sign(words, place) or _own_sign(word)
        if sign:
            yield -sign if _negated(words, place) else sign


def _own_sign(word: str) -> int:
    good = word in GOOD or word in {_GOOD_PHRASE, "record"}
    return good - (word in BAD or word == _BAD_PHRASE)


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
    after = words[place + 1 : place + 1 + NEGATION_REACH_BACK]
    return any(word in NEGATIONS or word.endswith("n't") for word in before) or (
        words[place] in BAD and any(word in NEGATIONS_AFTER for word in after)
    )
