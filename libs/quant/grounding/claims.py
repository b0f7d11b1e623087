# ruff: noqa: PLR0911, RUF001  (a list of refusals, one a line; dashes are read)
"""Whether a figure claims anything: not so the writer's own, a horizon, a line that is drawn."""

import re
from collections.abc import Sequence

from libs.quant.grounding import bounds, counts, events, headlines, words
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.sentence import Sentence

LINES = frozenset({20.0, 30.0, 50.0, 70.0, 80.0})
"""Where oscillators are called oversold, neutral and overbought, by convention."""
_ORDERED = re.compile(
    r"(?:\b(?<!at )(?:propose|suggest|recommend|commit|deploy|sell|trim|pick|choose|select|limit|"
    r"purchase|stake|(?<!-)cap|reduc|rais|keep|tak|buy|allocat|invest|add|put|siz|risk)m?(?:e|ing|t?ing)?\b"
    r"|(?:^|[,;:]\s)(?:cut|lower|reduce|raise|limit|keep|cap|hold)\b[^.;]{0,40}\b(?:to|at|below|under)\b"
    r"|^cut\b|\broom for\b|\b(?:position|stake|weight) of\b)"
    r"(?:\s(?!to|after|on|with|because|since|as)[a-z]+){0,6}\s(?:from\s[\d,]+\sto\s)?$",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:limit|ceiling|floor|(?<!market )(?<!large )(?<!mid )(?<!small )(?<!-)cap)\b"
    r"[^.;,:\d]{0,30}(?::\s)?$|"
    r"\b(?:maximum|minimum|budget)(?:\s(?:of|is|for|weight|position|cash|exposure))*:?\s$|"
    r"\b(?:no|any|single)\s(?:one\s|single\s)?(?:position|line|name|holding)"
    r"(?:\s(?:may|should|must|can|will|to|be|take|over|above|beyond|exceeds?|"
    r"(?:more|larger|greater|higher) than))*:?\s$|"
    r"\b(?:hold|keep)\s[a-z ]{3,20}\s(?:to|at|under|below)\s$|"
    r"\b(?:weight|exposure|position|allocation|cash|stake|line)\b(?!\s(?:is|are|was|were)\b)[^.;,\d]{0,20}\b(?:stops?|grow|"
    r"no (?:more|less|greater|higher|lower) than|at most|at least)\b[^.;,\d]{0,8}$|"
    r"\b(?:I|we)(?:'d|'ll|\swould|\swill)?\s(?:start|spend|begin|go|open|want|aim)\b[^.;,\d]{0,20}$|"
    r"\b(?:long|short)\s[A-Z.]+\sat\s$|\bspend (?:at most|no more than|up to)\s$",
    re.IGNORECASE,
)
"""Before a limit that the writer sets: "no position over 5%", "a floor of 20%"."""
_THEIRS = re.compile(
    r"\b(?:it|they|that|which|management|company|group|plant|deal|board)\s"
    r"(?:should|will|would|may|might|could|can|(?:wants|plans|intends|expects|aims|hopes) to)\s$",
    re.IGNORECASE,
)
"""Before what another does: "it should raise sales by 15%" is no order of the writer's."""
_OWN_COUNT = re.compile(
    r"^\s(?:of \d+ votes|votes?\b|for\b,|against\b|to (?:buy|sell)\b|scored\b|"
    r"(?:strongly )?(?:bullish|bearish|neutral|uncertain)\b)",
    re.IGNORECASE,
)
BARE_CHARS = 24
"""A shorter sentence gives little but its number: "Conviction 0.6."."""
_GRADE = re.compile(
    r"(?:^|[.,;:(]\s|\band\s)(?!(?:is|are|was|were|from|near|now|just|only|about)\b)"
    r"(?:[A-Za-z]{3,}|[A-Z][a-z]+\s[a-z]{3,}:)\s$"
)
"""A word of its own before a grade."""
_SCALE = re.compile(r"\d(?:\s(?:out )?of\s|/)$")
_ON_SCALE = re.compile(r"^/(?:5|10|100)\b(?!\.?\d|\s[a-z]+s\b)")
"""Behind a rating of the writer's own: "momentum 9/10"."""
_TO_TRADE = re.compile(r"^ (?:shares|of the|more\b)")
_TRADED = re.compile(r"\b(?:sell|buy|trim|purchase)\s$", re.IGNORECASE)
_NOUN = re.compile(r"^\s(?!and\b|at\b|with\b)[a-z]")
SCALES = frozenset({5.0, 10.0, 100.0})
"""What scores and ratings are out of."""
_STREAK = re.compile(r"^\s(?:consecutive|straight|successive)\s[a-z]", re.IGNORECASE)
_TOLD = re.compile(
    r"\b(?:headline|story|article|item|advertisement)\s(?:[a-z]+ly\s)?"
    r"(?:asks|calls|says|tells|claims|urges|demands|wants|recommends|advises|promises)\b[^.;,\d]*$",
    re.IGNORECASE,
)
"""Before what a headline wants: no limit, order or score of the writer's own."""
_THE_LINE = re.compile(r"\bthe\s$", re.IGNORECASE)
_IS_LINE = re.compile(r"^\s(?:line|mark|level|threshold)\b", re.IGNORECASE)
_HORIZON = re.compile(
    r"^\s*(?:to \d+\s)?(?:(?:trading|business|calendar)\s)?(?:days|weeks|months|years|sessions)\b",
    re.IGNORECASE,
)
_OF_SHARES = re.compile(r"^\s(?:out )?of (?:the |our |its )?(?P<whole>\d[\d,]*)(?: \w+)? shares\b")
_AWAITED = re.compile(
    r"\b(?:to|would|could|should|if|once|until|unless|when|wait|before|after|may|might|will|on)\s"
    r"(?:[a-z]+\s){0,3}[<>≤≥a-z]*\s?$",
    re.IGNORECASE,
)
_I = re.compile(r"\b(?:I|we)\s(?:would\s|have\s)?[a-z]+\s(?:[a-z]+\s){0,3}$", re.IGNORECASE)
_MOOD = re.compile(
    r"\b(?:positive|negative|neutral|bullish|bearish|mixed|upbeat|gloomy)\b[^.;\d]{0,20}$",
    re.IGNORECASE,
)
_ANY = re.compile(r"\b(?:an?|another|further|some|any|each)\s(?:[a-z]+\s){0,2}$", re.IGNORECASE)
_WOULD = re.compile(r"^[^.;]*\b(?:would|could|might)\b", re.IGNORECASE)
_ASSUMED = re.compile(r"\b(?:if|assum\w+|suppos\w+|should)\b", re.IGNORECASE)
_ODDS = re.compile(r"\b(?:odds|chances?|probability|likelihood)\b[^.;\d]*$", re.IGNORECASE)
"""Odds are the writer's own, whatever they are of."""
_LATER = re.compile(r"^\s(?:days?|weeks?|sessions?) (?:later|earlier|after)\b", re.IGNORECASE)
_TO = re.compile(r"\d\s?(?:to|-|–|or)\s?$")
_IN = re.compile(r"\b(?:after|in|every|within|following|coming|next|subsequent)\s$", re.IGNORECASE)
_EVENT = re.compile(r"\b(?:away|ago|from now|reports?|earnings|results)\b", re.IGNORECASE)
DAYS = re.compile(r"^\s(?:calendar\s)?days\b", re.IGNORECASE)
HISTORY = re.compile(
    r"^\s*(?:days|sessions|bars)?\s*(?:of (?:history|prices|data)|since)|"
    r"^\s*(?:bars|sessions|trading days)\b",
    re.IGNORECASE,
)


def claims(figure: Figure, said: Sentence) -> bool:
    """Whether a figure claims something: not the writer's own, a horizon, or a line drawn."""
    linked = said.sought(figure) if figure.unit in {"number", "percent", "days", "count"} else ()
    before = said.before(figure, 12)
    if _is_own(figure, said, linked):
        return False
    if figure.unit in {"number", "money", "percent"} and _is_line(figure, said):
        return False
    shares = (
        figure.unit == "number"
        and _TO_TRADE.match(said.after(figure, 9))
        and not said.before(figure, 4).lower().endswith(("all ", "of "))
    )
    if shares or figure.unit in {"percent", "ratio"}:
        ordered = _ORDERED.search(said.before(figure, 60))
        # "climbed, adding 25%" tells a move.
        moved = figure.unit == "percent" and ordered and ordered.group().lower() == "adding "
        theirs = ordered and _THEIRS.search(said.before(figure, 60)[: ordered.start()])
        if ordered and not (moved or theirs):
            return False
    weight = figure.unit == "number" and figure.value < 1 and figure.step < 1
    limited = weight or (figure.unit == "percent" and figure.step >= 1)
    if limited and not figure.signed and _LIMIT.search(said.before(figure, 60)):
        return False
    if _is_supposed(figure, said) or (figure.unit == "year" and said.text.rstrip().endswith("?")):
        # A question may ask of any years.
        return False
    if figure.unit == "date" and not figure.day:
        # "since June" of this year only says of what; "the best since last June" is a claim.
        return events.is_past(figure, said.facts)
    if figure.meant and figure.unit == "count":
        return (
            bool(_STREAK.match(said.after(figure, 20)))
            or counts.is_run(figure, said)
            or bool(DAYS.match(said.after(figure)) and said.has(_EVENT))
            or counts.is_refuted(figure, said)
            or headlines.is_refuted(figure, said)
        )
    if _LATER.match(said.after(figure)):
        return False
    if _TO.search(before) and _HORIZON.match(said.after(figure, 30)):
        return False
    days = figure.unit == "days" or (
        figure.unit in {"number", "count"} and _HORIZON.match(said.after(figure, 30))
    )
    if days and _IN.search(before) and not said.has(_EVENT):
        return False
    if days and figure.unit != "count":
        history = HISTORY.match(said.after(figure, 30))
        event = said.has(_EVENT)
        dated = any(each.unit == "date" for each in said.figures)
        return bool(history or event or dated or re.search(r"\bof the\s$", before))
    return not (figure.unit in {"money", "number"} and _drawn(figure, said))


def _is_own(figure: Figure, said: Sentence, linked: Sequence[str]) -> bool:
    """The writer's own scores, odds, votes and orders."""
    if _TOLD.search(said.before(figure, 80)):
        return False
    whole = figure.unit in {"number", "count"} and figure.step >= 1
    if whole and _OWN_COUNT.match(said.after(figure, 30)):
        return True
    if words.OWN in linked and figure.unit != "count" and said.is_own(figure):
        return True
    if figure.unit in {"number", "percent"} and _ODDS.search(said.before(figure, 90)):
        return True
    before = said.before(figure, 12)
    if figure.unit == "number":
        if _ON_SCALE.match(said.after(figure, 16)):
            return True
        if figure.value <= 1 and figure.step < 1 and not said.sought(figure):
            # "; urgency 0.8": a grade has no name that a tool knows.
            moved = words.directions(said.before(figure, 12))
            graded = _GRADE.search(said.before(figure, 40)) or len(said.text) < BARE_CHARS
            return bool(graded) and not moved
        if whole and _TRADED.search(before):
            return True
    on_scale = _SCALE.search(before) and figure.value in SCALES
    return bool(on_scale) and not _NOUN.match(said.after(figure))


def _is_supposed(figure: Figure, said: Sentence) -> bool:
    """What the writer supposes, waits for or would trade: no claim of what is."""
    if part := _OF_SHARES.match(said.after(figure, 30)):
        whole = float(part["whole"].replace(",", ""))
        return any(
            fact.value == whole
            for t in said.tickers(figure)
            for fact in said.facts.now(t, "quantity")
        )
    before = said.before(figure, 60)
    if (
        figure.unit == "number"
        and abs(figure.value) <= 1
        and (_I.search(before) or (_MOOD.search(before) and not said.sought(figure)))
    ):
        return True
    if figure.unit in {"number", "percent"} and bounds.is_bound(figure, said):
        return bool(_AWAITED.search(before))
    if figure.unit != "percent" or not _ANY.search(before):
        return False
    return bool(_WOULD.search(said.after(figure, 80)) or _ASSUMED.search(before))


def _is_line(figure: Figure, said: Sentence) -> bool:
    """A line that is known without evidence ("overbought above 70"), or supposed in a question."""
    side = words.BOUND_ABOVE.search(said.before(figure, 16)) or words.BOUND_BELOW.search(
        said.before(figure, 16)
    )
    if side:
        return False
    named = _THE_LINE.search(said.before(figure, 5)) and _IS_LINE.match(said.after(figure, 12))
    if figure.value in LINES and named:
        return True
    if figure.value in LINES and not said.tight(figure) and said.sought(figure) == ("rsi_14",):
        # The reading is given already: "RSI 55.9 has room before 70".
        ahead = [each for each in said.figures if each.end <= figure.start]
        return any(each.step < 1 or said.tight(each) == ("rsi_14",) for each in ahead)
    around = said.before(figure, 34) + said.after(figure, 14)
    return figure.unit == "number" and figure.value in LINES and bool(words.LINE.search(around))


def _drawn(figure: Figure, said: Sentence) -> bool:
    """A line that the sentence draws: what is counted or claimed against it is the claim."""
    side = words.BOUND_ABOVE.search(said.before(figure, 14)) or words.BOUND_BELOW.search(
        said.before(figure, 14)
    )
    if side is None:
        return False
    counted = re.search(
        r"\b(?:\w+) of the (?:\w+ )?(?:sessions|assets|days|shares|companies|four|five)\b",
        said.text,
    )
    return bool(
        counted
        or re.search(
            r"\b(?:first|last) (?:close |finish )?$", said.before(figure, 22)[: -len(side.group())]
        )
    )
