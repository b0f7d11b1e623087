# ruff: noqa: RUF001, E501  (minus signs and dashes are what it reads)
"""Figures in a text: numbers with their unit and precision, number words, dates and tickers.

What looks like a figure and claims nothing (a name, a parameter, a period) is passed over here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest

PRECISE_DIGITS = 3
FIGURES_MAX = 150
"""Figures read from one text; a finding has about twenty."""
VALUE_MAX = 1e18
"""A larger number is no figure of a market."""
TIMES_MAX = 10_000
"""What is no multiple of anything."""
TEXT_CHARS_MAX = 8_000
"""Characters of one text that are read: what a contract's text holds."""

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "EUR": "EUR", "USD": "USD", "GBP": "GBP"}
# What follows a number: its scale and its unit. The longest word comes first.
_SCALES = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "mrd.": 1e9, "mio.": 1e6, "mn": 1e6, "bn": 1e9, "tn": 1e12, "k": 1e3, "m": 1e6, "b": 1e9,
}  # fmt: skip
_UNITS = {
    "cents per dollar": ("times", 0.01), "cents on the dollar": ("times", 0.01),
    "percentage points": ("points", 1.0), "percentage point": ("points", 1.0),
    "percent": ("percent", 1.0), "%": ("percent", 1.0), "points": ("points", 1.0), "pp": ("points", 1.0),
    "basis points": ("percent", 0.01), "bps": ("percent", 0.01),
    "cents": ("money", 0.01), "cent": ("money", 0.01), "c": ("money", 0.01),
    "dollars": ("money", 1.0), "euros": ("money", 1.0), "euro": ("money", 1.0),
    "times": ("times", 1.0), "x": ("times", 1.0),
    "days": ("days", 1.0), "day": ("days", 1.0),
}  # fmt: skip
_CURRENCY_OF = {"dollars": "USD", "euros": "EUR", "euro": "EUR"}


def _any_of(words: dict[str, object]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(
        re.escape(word) + (r"\b" if word[-1].isalpha() else "") for word in longest_first
    )


_AMOUNT = (
    r"\d{1,3}(?:[,\u202f\u00a0\u2009]\d{3})+(?:\.\d+)?"
    r"|\d+,\d{1,2}(?=\s(?:Mrd|Mio))|\d+(?:\.\d+)?|\.\d+"
)
_FIGURE = re.compile(
    rf"(?P<minus>(?<![\w)])[-−–]|(?<=[^\s\w)]\s)[-−–]\s|\bminus\s|\((?=[$€£\d]))?(?P<plus>(?<!\w)\+)?"
    rf"(?:(?P<currency>[$€£]|\b(?:EUR|USD|GBP)\s)(?P<late>[-−])?)?"
    rf"(?<![\w.])(?P<number>{_AMOUNT})(?![\d])"
    rf"(?:(?:\s|-(?=[a-z]{{4}}))?(?P<scale>{_any_of(dict(_SCALES))}))?"
    rf"(?:(?:\s|-(?=[a-z]{{4}}))?(?P<unit>{_any_of(dict(_UNITS))}))?",
    re.IGNORECASE,
)
_WORDS = {
    word: float(value)
    for value, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
    )
} | {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0,
     "third": 3.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0, "seventh": 7.0, "eighth": 8.0,
     "eighty": 80.0, "ninety": 90.0, "hundred": 100.0}  # fmt: skip
_RATIOS = {
    "twice": 2.0, "double": 2.0, "thrice": 3.0, "triple": 3.0, "half": 0.5,
    "third": 1 / 3, "thirds": 1 / 3, "quarters": 0.25, "fifths": 0.2, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1,
}  # fmt: skip
_COUNTED = frozenset(
    {
        *("headlines", "stories", "items", "positions", "holdings", "orders", "order", "headline"),
        *("position", "match", "matches", "prices", "histories", "reports", "companies", "assets"),
        *("shares", "stocks", "tickers", "names", "closes", "sessions", "days", "analysts"),
        *("brokers", "candidates", "results", "calls", "years", "quarters", "european", "open"),
        *("times", "are", "rose", "fell", "gained", "lost", "closed"),
    }
)
_WORD = re.compile(
    rf"\b(?<!in )(?<!over )(?<!within )(?<!after )(?P<ratio>(?:(?:a|one|two|three|four)\s)?(?:{'|'.join(_RATIOS)}))\b"
    r"(?<!first half)(?!\s(?:of\s)?the\s(?:usual|normal|position|size|stake|holding)\b)(?<!upper half)(?<!lower half)(?<!second half)(?!\s(?:month|quarter|day|report|year|of (?:19|20)\d\d|of the year)|'s)"
    rf"|\b(?<!every )(?<!the only )(?<!any )(?<!each )(?P<word>no|{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)
# "the ten sessions", "all four", "GOOG's six closes" only say which are meant.
_MEANT = re.compile(
    r"(?:\b(?:the|all|these|those|last|past|next|first|over|in|for|within|than)|'s)\s$",
    re.IGNORECASE,
)
_OF_THE = re.compile(
    rf"(?:\d|\b(?:none|all|each|most|half|third|{'|'.join(_WORDS)}))\s(?:out\s)?of\s(?:the\s|all\s|its\s)?(?:last\s|past\s)?$",
    re.IGNORECASE,
)
_PART_OF = re.compile(
    r"^\s(?:out\s)?of\s(?:the|them|which|whom|all|its|our|these|\d{1,2}(?![\d.,])|"
    + "|".join(_WORDS)
    + r")\b",
    re.IGNORECASE,
)
_STREAK = re.compile(r"\s(?:consecutive|straight|successive)\b", re.IGNORECASE)
_NOUN = re.compile(
    rf"(?P<what>\s(?!of\b|and\b|or\b|the\b|to\b|at\b)[a-z][\w-]*)?\s(?P<noun>{'|'.join(sorted(_COUNTED, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\s(?:(?:to|or)\s[a-z]+\s|[a-z]+\s)?[a-z]{3,}(?<!s)s\b")
_ENDS = re.compile(r"\s?[.,;:)]")
_TIMES = frozenset({"sessions", "days", "closes", "years", "quarters"})
_SESSIONS = frozenset({"sessions", "days", "closes"})
_LAST = re.compile(r"\b(?:last|past)\s$", re.IGNORECASE)
_IN_TIME = re.compile(r"\b(?:over|in|within|than)\s$", re.IGNORECASE)
_ROW = re.compile(r"\s(?:running|in a row)\b", re.IGNORECASE)
_RATIO_OF = re.compile(
    r"^\s(?:of|the|that|as|what|its|their|above|below|over|under|more|less|\w{2,}er)\b",
    re.IGNORECASE,
)
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = (
    r"(?P<{0}>january|february|march|april|may|june|july|august|september|october|november|"
    r"december|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH.format('month')}(?:\s(?P<year>\d{{4}}))?\b",
        r"\bthe\s(?P<day>\d{1,2})(?:st|nd|rd|th)\b(?P<month>)(?P<year>)",
        # "6 and 15 March", "March 8 and 14": the month is said once.
        rf"(?<![\d.,])\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?=\s?(?:,|and|to|or|until|-|–|/)\s?\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH.format('month')})(?P<year>)",
        rf"(?:(?<=\bsince\s)|(?<=\bfrom\s)){_MONTH.format('month')}(?P<day>)(?:\s(?P<year>\d{{4}}))?(?!\s?\d)\b",
        rf"\b{_MONTH.format('month')}\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s(?P<year>\d{{4}}))?\b",
    )
)
# Names, parameters and periods: they hold digits and claim nothing.
_NAMES = re.compile(
    r"\b[A-Z][A-Za-z]*\(\s?\d+(?:\s?,\s?\d+)*\s?\)"  # RSI(14), MACD(12, 26, 9)
    r"|\b\d+(?:-\d+)?-(?!\d|cents?\b|percent|(?:mill|bill|trill)ion|dollars?\b|euros?\b)(?:[A-Za-z]+|(?=,|\s(?:and|or)\s))"  # 50-day, 10-K, "20- and"
    r"|\b(?!(?:mid|late|early|end)-(?:19|20)\d\d\b)[A-Za-z]+-?\d+[A-Za-z]*\b(?![.,]\d)"  # SMA50, E0, COVID-19
    r"|\b(?:[QH][1-4]|FY)(?:\s'?\d{2,4})?\b|\b\d[QH]\d{2,4}\b"  # Q3 2012, 4Q23
    r"|(?:(?<=^)|(?<=[.!?:;]\s)|(?<=\n))\d{1,2}[.)](?=\s)"  # numbers of a list
    r"|(?:(?<=^)|(?<=[.!?:;]\s)|(?<=\n)|(?<=\*\s))\(\d{1,2}\)(?=\s[A-Z])"  # (1) Oil
    r"|(?<![$€£.,])\b(?!1[sx]|\d+(?:[ckmbxCKMBX]|[bmtBMT][nN])\b)\d{1,3}[A-Za-z]{1,2}\b"  # 4S
    r"|(?<![$€£.,])\b(?:\d{1,3} d|(?:1|3|6|12)[mM]|\d{1,3}(?:[DSE]MA|[dse]ma))\b"  # 3m, 200DMA
    r"|\b(?:S&P|Dow|\w*DAX|MSCI|ASX|SMI|IBEX|AEX|Nifty|Hang Seng|Top|Web|Group|CAC|FTSE|Nikkei|Russell|Nasdaq|Stoxx|TOPIX|Form|ISO|Rule|Section|"
    r"Chapter|Phase|Level|Tier|Fortune|Windows|Basel|Article|Note|Item|Figure|Table)(?:\s\d{1,4}\b)"
    r"|(?<=\b[Tt]he )(?!E\d)[A-Z][a-z]+ \d{1,2}\b(?![.,]?\d|%)(?=\s[a-z])"  # the Nexus 7 tablet
    r"|\b(?:iPhone|Boeing|Airbus|Model|Xbox|PlayStation|Galaxy)\s\d+[A-Za-z]*\b",
    re.MULTILINE,
)
_YEAR = re.compile(r"(?<![\d.,$€£])(?:19|20)\d\d(?![\d,]*\d|\.\d|\s?%)")
_CLAIMED = re.compile(r"\b(?:by|since)\s$", re.IGNORECASE)
"""Before a year that claims something: "the worst since 1933"."""
_TICKER = re.compile(
    r"(?<![\w.])(?:[A-Z]{2,5}(?:[.-][A-Z]{1,2})?|[A-Z][A-Z0-9]{1,5}\.[A-Z]{1,2})(?![\w])"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a text. `value` has its written sign; `step` is its last place, both scaled.

    `unit` is money, percent, points, times, days, number, count (a number word), ratio (a ratio in
    words), date, year or ticker.
    """

    start: int
    end: int
    text: str
    unit: str
    value: float = 0.0
    step: float = 1.0
    zeros: int = 0
    negative: bool = False
    signed: bool = False
    currency: str = ""
    year: int | None = None
    month: int = 0
    day: int = 0
    meant: bool = False
    loose: bool = False

    @property
    def is_precise(self) -> bool:
        """Whether it has so many digits that an equal value elsewhere is hardly an accident."""
        digits = re.sub(r"\D", "", self.text).lstrip("0")
        if self.unit == "money":
            if "." in self.text:
                return len(digits) >= PRECISE_DIGITS - 1
            digits = digits if self.step > 1 else digits.rstrip("0")
        return len(digits) >= PRECISE_DIGITS

    def says(self, value: float, *, money: bool = False) -> bool:
        """Whether this is `value`, rounded at the last place written or cut off there."""
        return any(self._at(value, self.step * 10**zeros, money) for zeros in range(self.zeros + 1))

    def _at(self, value: float, step: float, money: bool) -> bool:
        written, actual = abs(self.value), abs(value)
        if not 0 <= written < VALUE_MAX:
            return False
        slack = 1e-12 + 1e-9 * actual
        if abs(written - actual) <= slack:
            return True
        if not written:
            return actual <= step / 2
        places = round(written / step) if step else 0
        while step > self.step and places and places % 10 == 0:
            places //= 10
        enough = places >= 10 or (self.unit in {"percent", "points"} and step <= 1.0)
        enough = enough or ((money or self.unit == "money") and step <= 0.01)
        near = abs(written - actual) <= step / 2 + slack
        cut = 0 <= actual - written < step - slack
        return enough and (near or cut)

    def is_day(self, day: date) -> bool:
        """Whether the parts that are written are those of `day`."""
        same_month = self.month in {0, day.month}
        return same_month and self.day in {0, day.day} and self.year in {None, day.year}


def figures(text: str) -> tuple[Figure, ...]:
    """All figures of a text in its order, at most FIGURES_MAX; see `Figure`."""
    text = text[:TEXT_CHARS_MAX]
    taken = bytearray(len(text))
    found: list[Figure] = []
    for reader in (_dates, _names, _numbers, _words):
        for figure in reader(text, taken):
            taken[figure.start : figure.end] = b"\x01" * (figure.end - figure.start)
            if figure.unit != "name":
                found.append(figure)
    found.sort(key=lambda figure: figure.start)
    return tuple(_ranges(found[:FIGURES_MAX], text))


def _ranges(found: list[Figure], text: str) -> Iterator[Figure]:
    """The figures; the first end of a range is in the unit of the second: "2-3%"."""
    for one, two in zip_longest(found, found[1:]):
        joined = two and text[one.end : two.start] in {"-", "–", " to ", " and ", " or "}
        if joined and one.unit == "number" and two.unit in {"percent", "times"}:
            yield replace(one, unit=two.unit)
        else:
            yield one


def ticker_names(text: str) -> Iterator[Figure]:
    """Words that look like tickers."""
    for match in _TICKER.finditer(text[:TEXT_CHARS_MAX]):
        yield Figure(match.start(), match.end(), match.group(), "ticker")


def _free(match: re.Match[str], taken: bytearray) -> bool:
    return not any(taken[match.start() : match.end()])


def _dates(text: str, taken: bytearray) -> Iterator[Figure]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if not _free(match, taken):
                continue
            name = match["month"]
            month = int(name) if name.isdigit() else _month_number(name) if name else 0
            year = int(match["year"]) if match["year"] else None
            yield Figure(
                match.start(), match.end(), match.group(), "date",
                year=year, month=month, day=int(match["day"] or 0), meant=not match["day"],
            )  # fmt: skip


def _month_number(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def _names(text: str, taken: bytearray) -> Iterator[Figure]:
    for match in _NAMES.finditer(text):
        if _free(match, taken):
            yield Figure(match.start(), match.end(), match.group(), "name")
    for match in _YEAR.finditer(text):
        if _free(match, taken):
            claimed = _CLAIMED.search(text[max(0, match.start() - 6) : match.start()])
            year = float(match.group())
            yield Figure(match.start(), match.end(), match.group(), "year", year, meant=not claimed)


def _numbers(text: str, taken: bytearray) -> Iterator[Figure]:
    for match in _FIGURE.finditer(text):
        number_at = match.start("number")
        if taken[number_at] or taken[match.end("number") - 1]:
            continue
        yield _number(match)


def _number(match: re.Match[str]) -> Figure:
    digits = match["number"]
    if (match["scale"] or "").lower() in {"mrd.", "mio."}:
        digits = digits.replace(",", ".")
    digits = re.sub(r"[,\u202f\u00a0\u2009]", "", digits)
    places = len(digits.partition(".")[2])
    zeros = 0 if places else len(digits) - len(digits.rstrip("0") or "0")
    scale = _SCALES.get((match["scale"] or "").lower(), 1.0)
    word = (match["unit"] or "").lower()
    unit, factor = _UNITS.get(word, ("number", 1.0))
    sign = (match["currency"] or "").strip().upper()
    if sign:
        unit = "money" if unit in {"number", "money"} else unit
    minus = match["minus"] or match["late"] or ""
    negative = bool(minus) and minus != "("
    # ($0.85) is a loss of 85 cents, or 85 cents in parentheses: the evidence tells which.
    loose = minus == "(" and bool(sign) and match.string[match.end() :][:1] == ")"
    value = float(digits) * scale * factor
    if word == "times" and value >= TIMES_MAX:
        # "changed hands 24,939,200 times"
        unit = "number"
    return Figure(
        start=match.start() + (minus == "("),
        end=match.end(),
        text=match.group().strip("( "),
        unit=unit,
        value=-value if negative else value,
        step=10.0**-places * scale * factor,
        zeros=zeros,
        negative=negative,
        signed=negative or bool(match["plus"]),
        loose=loose,
        currency=_CURRENCIES.get(sign, _CURRENCY_OF.get(word, "")),
        meant=bool(_MEANT.search(match.string[max(0, match.start() - 12) : match.start()])),
    )


def _words(text: str, taken: bytearray) -> Iterator[Figure]:
    for match in _WORD.finditer(text):
        if not _free(match, taken):
            continue
        before = text[max(0, match.start() - 24) : match.start()]
        if match["ratio"]:
            last = match["ratio"].lower().split()[-1]
            if (
                last not in {"twice", "double", "thrice", "triple", "half"}
                and " " not in match["ratio"]
            ):
                continue
            behind = text[match.end() : match.end() + 12]
            if last not in {"twice", "double", "thrice", "triple"} and not _RATIO_OF.match(behind):
                continue
            factor = _WORDS.get(match["ratio"].lower().split()[0], 1.0)
            value = _RATIOS[last] * factor
            yield Figure(match.start(), match.end(), match.group(), "ratio", value)
            continue
        word = match["word"].lower()
        counted = _NOUN.match(text, match.end())
        following = counted["noun"].lower() if counted else ""
        if following not in _TIMES:
            # "over the ten sessions" only says which; "spread over four positions" counts.
            before = _IN_TIME.sub(" ", before)
        part = _OF_THE.search(before) or _PART_OF.match(text[match.end() : match.end() + 20])
        if following in _SESSIONS and _LAST.search(before):
            part = None
        row = _ROW.match(text, counted.end()) if counted else None
        meant = bool(_MEANT.search(before)) and not part and not row
        value = _WORDS.get(word, 0.0)
        if following == "times" and not (counted and counted["what"]):
            yield Figure(match.start(), match.end() + 6, match.group(), "ratio", value)
            continue
        counts = following in _COUNTED or part or _STREAK.match(text, match.end())
        alone = before.endswith((" the ", ": ")) and _ENDS.match(text, match.end())
        things = _PLURAL.match(text, match.end()) or alone
        if word != "no" and (counts or (value > 1 and things)):
            # What no tool counts only says which: "two reasons".
            yield Figure(
                match.start(), match.end(), match.group(), "count", value, meant=meant or not counts
            )
