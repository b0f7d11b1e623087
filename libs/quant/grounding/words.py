# ruff: noqa: E501, ISC004, RUF001, SIM905  (tables, each row on its line; a minus sign is read)
"""The words of a report: which quantity they name, which way they point, what they ask for.

Everything here is a table. A word that names a quantity which no tool answers (`OTHER`) keeps its
figure from passing as something else; the writer's own judgement (`OWN`) is no claim at all.
"""

import re
from dataclasses import dataclass

OTHER = "other"
OWN = "own"

# The first that matches takes its words; a name in a report may mean any of its quantities.
_NAMED: tuple[tuple[str, str], ...] = (
    (
        OWN,
        r"(?:fundamental|technical|risk|sentiment|composite)(?:[_ ]score)?(?=\s\d)|scores?\b|scored\b|"
        r"confidence|conviction|odds|chance|probability|likelihood|horizon|weights?\b|budget|"
        r"signal strength|allocation|risk limit|ceiling|(?:single-name |position )(?:cap|limit|size)|sizing|reward[- ]to[- ]risk target|within(?=\s\d+ (?:days|weeks|sessions))",
    ),
    (
        OTHER,
        r"52-week (?:high|low)|all-time high|gross margin|free cash flow|cash flow|dividend yield|"
        r"(?:dividend|bond|treasury|cash flow|a|the) yields?\b|\d-year yield|dividends?\b|payout|fair value|discounted|price target|targets?\b|stops?\b|"
        r"guidance|hit rate|ratings?\b|cases\b|beta\b|sharpe\w*(?: ratio)?|drawdown|peg\b|roe\b|roa\b|"
        r"roic\b|ebitda|book value|price to book|p/b\b|employees|staff|data cent\w+|units|users|"
        r"subscribers|customers|short interest|inflation|interest rates?|the fed\b|index\b|s&p 500|"
        r"dow \d+|nasdaq|russell \d+|growth|grow\b|tax\b|jobs|deals?\b|order intake|"
        r"orders? (?:worth|of)|contracts?\b|buy-?backs?|lock-up|stores|patents",
    ),
    ("price_to_sales revenue_ttm", r"p/s\b|price[-/ ](?:to[-/ ])?sales|(?:times|x) (?:its )?(?:trailing )?(?:sales|revenues?)\b|sales multiple"),
    ("earnings_yield_pct", r"earnings yield"),
    ("eps_ttm eps_actual", r"(?:profits?|loss(?:es)?|income|earnings) (?:per|a) share"),
    ("operating_income operating_margin_pct", r"operating (?:profit|income|loss)\b(?! margin)"),
    ("net_income profit_margin_pct", r"(?:net )?(?:profit|income)\b(?! margin)|net loss\b(?! of \S+ (?:a|per) share)"),
    ("invested position_value position_cost", r"invested\b|positions (?:are worth|come to|total)"),
    ("order_value", r"would cost"),
    ("position_value order_value market_cap", r"worth\b|releases?\b|frees?\b(?: up)?|proceeds"),
    ("band_width bollinger_upper bollinger_lower sma_20", r"(?<!upper )(?<!lower )bollinger(?: bands?| range| channel| envelope)?\b|band ?width|bands?\b|envelopes?\b"),
    ("rsi_14", r"rsis?(?:[_ ]?14)?\b|relative strength(?: index)?|14-day rsi"),
    ("macd_histogram", r"macd[_ ]hist(?:ogram)?|hist(?:ogram)?\b"),
    ("macd_signal", r"(?:macd )?(?:signal(?: line)?|trigger line)|macd_signal"),
    ("macd", r"macds?(?: line)?\b"),
    ("bollinger_upper", r"(?:upper|top) (?:bollinger )?(?:band|line|boundary)|bollinger_upper|upper one"),
    ("bollinger_lower", r"(?:lower|bottom) (?:bollinger )?(?:band|line|boundary)|bollinger_lower|(?:the lower|lower one)(?=(?: at)? [$€]?\d|[,.;]|\s(?:one|while|and)\b)"),
    ("sma_20", r"(?:middle|mid)(?: bollinger)? (?:band|line|one)|bollinger_middle"),
    ("ema_12", r"ema[-_ ]?\(?12\)?|12-day\b(?: ema| exponential)?(?: moving)?(?: average| line)?"),
    ("ema_26", r"ema[-_ ]?\(?26\)?|26-day\b(?: ema| exponential)?(?: moving)?(?: average| line)?"),
    ("sma_20", r"20-(?=,|\s(?:and|or)\s)|20[- ]?d(?:ay|ma)?\b(?: simple)?(?: moving)?(?: average| line| sma| ma| one| mean)?|sma[-_ ]?\(?20\)?(?!\d)"),
    ("sma_50", r"50-(?=,|\s(?:and|or)\s)|50[- ]?d(?:ay|ma)?\b(?: simple)?(?: moving)?(?: average| line| sma| ma| one| mean)?|sma[-_ ]?\(?50\)?(?!\d)"),
    ("sma_200", r"200-(?=,|\s(?:and|or)\s)|200[- ]?d(?:ay|ma)?\b(?: simple)?(?: moving)?(?: average| line| sma| ma| one| mean)?|sma[-_ ]?\(?200\)?(?!\d)"),
    ("ema_12 ema_26", r"emas\b"),
    ("sma_20 sma_50 sma_200", r"smas\b|(?:moving |long |short )*averages\b(?! [\d$€£])|(?:long|medium|short)-term (?:trend|average)s?"),
    (OTHER, r"\d{1,3}-day (?:moving )?(?:average|line|ema|sma)"),
    ("atr_14", r"atrs?(?:[_ ]?14)?\b|(?:(?:average|typical|normal) )?(?:true|(?:average|typical|normal)(?: day's| daily)?) range|14-day atr|atr\(14\)"),
    ("volatility_3m_pct", r"(?:three-month |3-month )?volatilit\w+|volatile|vol\b|turbulen\w+|annuali[sz]ed swings?"),
    (
        "momentum_3m_pct",
        r"(?:three|3)-month (?:momentum|return|gain|loss|change)|momentum_3m_pct|"
        r"mom(?:entum)? 3m\b|3-?mo?\b|(?:three|3)[- ]months?\b(?! (?:figure|reading|number))|quarter(?:ly|\'s)?\b(?: momentum)?",
    ),
    ("momentum_3m_pct volatility_3m_pct", r"(?:three|3)-month (?:figure|reading|number)\b"),
    (
        "momentum_1m_pct",
        r"(?:one|1)-month (?:momentum|return|gain|loss|change)|momentum_1m_pct|"
        r"mom(?:entum)? 1m\b|1-?mo?\b|(?:(?:a|the|one|1|past|last|trailing)[ -]|(?<!-))month(?:ly|-on-month|\'s)?\b(?: momentum)?",
    ),
    ("momentum_1m_pct momentum_3m_pct", r"momentum\b"),
    ("day_change_pct", r"day_change_pct|day changes?|daily (?:changes?|moves?|gains?|loss(?:es)?)|on the day\b|day's (?:gain|loss|change|move)|in a day\b"),
    ("volume", r"volumes?\b|shares? (?:were )?(?:changed hands|traded)|chang\w+ hands(?! (?:at|for))|trading was|turnover|traded\b(?= \d)"),
    ("operating_margin_pct", r"operating_margin_pct|(?:operating\b|op\b\.?)(?: profit)?(?: margins?)?"),
    ("profit_margin_pct operating_margin_pct", r"margins\b(?= \d)|profitability"),
    ("profit_margin_pct", r"\bnet\b(?= *(?:[,.;)]|$|\d))|(?:net (?:profit |income )?|profit )?margins?\b|profit_margin_pct"),
    ("debt_to_equity", r"debt(?:[- _]to[- _]equity|/equity| is| above equity)?\b|(?:times|x) (?:the |its )?equity\b|leverage|gearing|d/e\b|debt ratio|indebted\w*|borrow\w*"),
    ("pe_ratio eps_ttm", r"(?:times|x) (?:its )?(?:trailing )?(?:earnings|profits?)\b"),
    ("pe_ratio", r"p/?e(?:s\b|\b)(?: ratios?| multiple)?|pe_ratio|price/earnings|earnings multiple|price[- ]to[- ]earnings|price-earnings|multiple\b"),
    ("market_cap position_value", r"(?:market|mkt\.?)[ _](?:value|cap(?:italisation|italization)?)|capitali[sz]ation|(?<=[bmn] )cap\b|equity value|(?:company|group|it) is worth|valued\b|of value\b|valuation of"),
    ("revenue_ttm", r"revenues?\b(?:_ttm)?|sales\b|top line|turn(?:s|ed)? over\b"),
    ("shares_outstanding", r"shares(?: are)? outstanding|shares_outstanding|shares:(?=\s\d)|shares in issue"),
    ("eps_next eps_estimate", r"estimates?\b|estimated|expect(?:s|ed|ations)?\b|cons(?:ensus)?\b|forecast\w*|pencil\w* in|look(?:ed|s)? for|seen at|the street|est\b|feared"),
    ("eps_ttm", r"(?:trailing|ttm|twelve-month|12-month) (?:(?:twelve|12)[- ]months? )?(?:eps|earnings)\b(?: per share)?|eps_ttm"),
    ("eps_ttm eps_actual", r"(?:lost|loses|loss(?:es)?(?: of)?)(?= \S+(?: cents)? (?:a|per) share)|earnings(?: of| per share)?|eps(?:_ttm)?\b|earn(?:ed|s)|ma(?:kes?|de|king)(?= \S+(?: cents)? (?:a|per) share)|net loss(?= of)|loss(?= (?:was|of) (?:\$|\d+ cents))"),
    ("average_cost position_cost", r"average[_ ]cost|costs? (?:of|basis|price)|cost\b(?! (?:us|the|it|of living|cut))|paid(?: price)?\b|bought\b|entry(?: price)?\b|purchase price|cost (?:a|per) share|our cost"),
    ("equity", r"(?:total |account )?equity\b|(?:account|portfolio)(?: value)?\b|net asset value|the book\b"),
    ("cash", r"cash\b|uninvested\b"),
    ("quantity average_cost close", r"@"),
    ("order_quantity", r"on order|(?:buy|sale) of|orders?\b|orders? for|to be bought"),
    ("quantity_after", r"(?:holding|position|stake)s?(?= to \d)"),
    ("quantity", r"hold(?:s|ing|ings)?\b|held\b|own(?:s|ed)\b|(?<!its )(?<!'s )own\b|shares? held|positions?\b|stakes?\b"),
    ("close", r"closing (?:low|high)s?\b"),
    ("low", r"as low as|lows?\b|lowest(?: price)?|trough\w*|bottom(?:ed)?"),
    ("high", r"as high as|the top(?= on|[.,;)])|highs?\b|topped (?:out )?at|highest(?: price)?|peak(?:ed)?"),
    ("open", r"open(?:ed|s|ing)?\b(?! orders?)"),
    ("bars", r"bars\b"),
    ("close", r"clos(?:e|es|ed|ing)\b|(?<!target )prices?\b|priced at|quotes?\b|quoted at|last(?=:?\s[$€£]?\d+\.\d)|settled|finished at|ended (?=at|\w+day)|trad(?:es|ing|ed) (?=at|below|above|under|over)|current_price"),
    ("close order_value", r"costs\b"),
    ("volume quantity order_quantity shares_outstanding", r"shares\b|share count"),
)  # fmt: skip
_MENTION = re.compile(
    "|".join(f"(?P<n{index}>(?<![a-z])(?:{words}))" for index, (_, words) in enumerate(_NAMED)),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Words that name a quantity, and which ones they may mean."""

    start: int
    end: int
    concepts: tuple[str, ...]


def mentions(text: str) -> tuple[Mention, ...]:
    """The quantities that a text names, in its order."""
    found = [
        Mention(match.start(), match.end(), tuple(_NAMED[int(match.lastgroup[1:])][0].split()))
        for match in _MENTION.finditer(text)
        if match.lastgroup and not _is_adjective(match) and not _is_of_no_band(match)
    ]
    if any(each.concepts[0].startswith("momentum") for each in found):
        # "over one and three months", "-13.8% in one month, -9.1% in three".
        taken = {place for each in found for place in range(each.start, each.end)}
        found += [
            Mention(match.start(), match.end(), (_SPAN_OF[match.group().lower()],))
            for match in _BARE_SPAN.finditer(text)
            if match.start() not in taken
        ]
    return tuple(sorted(found, key=lambda each: each.start))


_BARE_SPAN = re.compile(
    r"\b(?:one|three)\b(?=\s?(?:[.,;()\n]|$|(?:and|or|to|versus|vs)\b))|(?<=\bover )(?:one|three)(?=\s[-+−]?\d)",
    re.IGNORECASE,
)
_SPAN_OF = {"one": "momentum_1m_pct", "three": "momentum_3m_pct"}


def _is_of_no_band(match: re.Match[str]) -> bool:
    """Whether "the lower" is not said of the bands."""
    bare = match.group().lower() in {"the lower", "lower one", "upper one"}
    return bare and "band" not in match.string[: match.start()].lower()


def _is_adjective(match: re.Match[str]) -> bool:
    """Whether "high" or "low" says how something is: "an RSI of 79.5 is high", "low risk"."""
    text = match.string
    if match.group().lower() == "close":
        return text.startswith(" to ", match.end())
    if match.group().lower() not in {"high", "low"}:
        return False
    before = text[max(0, match.start() - 14) : match.start()]
    return bool(_ADJECTIVE.search(before) or _DESCRIBES.match(text[match.end() :]))


DOWN = re.compile(
    r"\b(?:f[ae]ll(?:s|ing|en)?|los(?:t|e|es|ing|s|ses)|down|drop(?:s|ped|ping)?|slid\w*|slip\w*|"
    r"declin\w+|decreas\w+|reduc\w+|cut(?:s|ting)?(?! out)|below|under|beneath|south of|lower|cheaper|miss(?:ed|es)?|negative|weaker|shr[aiu]nk|"
    r"slump\w*|s[iau]nk\w*|shed(?:s|ding)?|tumbl\w+|plung\w+|plummet\w*|eas(?:ed|es|ing)|retreat\w*|g[ai]ve(?:s|n)? (?:up|back)|worse|poorer|weaken\w*|minus|short of|that cost|has cost|costs? us|setback|less\b|fewer|(?:took|taken|taking)(?= (?:off |away )?(?:about )?[$€£]?\d)|under water|in the red|off(?=\s[$€£\d]|\s$)|underwater|behind|less than|discount)\b",
    re.IGNORECASE,
)
UP = re.compile(
    r"\b(?:r[io]se[sn]?|rising|gain(?:s|ed|ing)?|put on|up|above|over|clear of|north of|higher|in front|jump\w*|climb\w*|add(?:ed|s)|beat(?:s|en)?|"
    r"grew|grow\w*|increas\w+|ahead|profit\w*|earn(?:ed|s)?|positive|upside|bounc\w+|advanc\w+|in the black|"
    r"surprise|soar\w*|surg\w+|rall(?:y|ied|ies)|rebound\w*|recover\w*|improv\w+|outperform\w*|better|stronger|top(?:s|ped)|premium|dear(?:er)?|raised|lifted|busier|exceed\w*)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(rf"(?P<down>{DOWN.pattern})|(?P<up>{UP.pattern})", re.IGNORECASE)


def directions(text: str) -> list[tuple[int, int]]:
    """Where words point down (-1) or up (1); the "up" of "gave up" is none of its own."""
    return [(match.start(), 1 if match["up"] else -1) for match in _POINTS.finditer(text)]


SIDE = re.compile(
    r"\b(?:(?P<up>above|over|north of|higher than|more than)|below|under|beneath|south of|lower than|less than)\b"
    r"(?P<line>\s[$€£]?(?P<value>\d+(?:\.\d+)?))?",
    re.IGNORECASE,
)
"""Beyond which side of what something lies; of a line that is drawn, its value."""
# "over" that tells a time and no direction.
OVER_TIME = re.compile(
    r"\bover (?:one|three)(?=[.,;)]|$|\s[-+−]?\d)|\bover (?:all|the) (?:two|three|four|five|six|seven|eight)\b|\bover (?:(?:the|a|an|its|past|last) )*(?:\w+ )?(?:sessions?|months?|weeks?|years?|days?|quarters?|spans?|periods?|stretch|window)\b",
    re.IGNORECASE,
)
BOUND_ABOVE = re.compile(
    r"(?:\b(?:above|over|north of|(?:more|higher|greater|larger) than|at least|in excess of|beyond|exceed\w*|upwards of)\s|>=?\s?|≥\s?)$",
    re.IGNORECASE,
)
BOUND_BELOW = re.compile(
    r"(?:\b(?:below|under|south of|(?:less|fewer|lower|smaller|cheaper) than|at most|beneath)\s|(?<!\w)<=?\s?|≤\s?)$",
    re.IGNORECASE,
)
BETWEEN = re.compile(r"\bbetween\s(?:[-+−]?[$€£]?[\d.,]+%?\sand\s)?$", re.IGNORECASE)
ALL = re.compile(r"\b(?:all|every|each|both|across the board|throughout)\b", re.IGNORECASE)
LINE = re.compile(
    r"\b(?:overbought|oversold|line|threshold|level of|mark|territory|neutral)\b", re.IGNORECASE
)
MEAN = re.compile(
    r"\b(?:on average|typical|normal|norm(?! (?!of\b)[a-z])|average|averaged|averaging|(?<!both )(?<!all )(?<!moving )(?<!the )averages(?= [\d$€£])|mean)\b(?! (?:true|cost))",
    re.IGNORECASE,
)
PREVIOUS = re.compile(
    r"\b(?:day|session) before\b|\bbefore the weekend\b|\b(?:previous|prior) (?:day|session|close)|\byesterday",
    re.IGNORECASE,
)
LAST = re.compile(r"\b(?:last|latest|final) (?:day|session)\b", re.IGNORECASE)
NEXT = re.compile(
    r"\b(?:day|session) (?:after|later)\b(?! (?:the|its|an?)\b)|\b(?:next|following) (?:day|session)\b",
    re.IGNORECASE,
)
FIRST = re.compile(
    r"\b(?:first|since|from|listing|listed|debut\w*|sessions|trading days|close to close|opened|beg[aiu]n\w*|opening (?:day|session))\b",
    re.IGNORECASE,
)
IN_A_SESSION = re.compile(
    r"\bon the (?:day|session)\b|\b(?:in|within) (?:a|one|the) (?:session|day)\b|\btoday\b|"
    r"\b(?:day|session|today|yesterday|\w+day)'s\b|\bon \w+day\b",
    re.IGNORECASE,
)
RANGE = re.compile(
    r"\b(?:range[ds]?|between|intraday|swing|spread|spann?\w*|dipped|touched|tagged|tested|during the (?:day|session)|(?:after|with) an? (?:high|low))\b",
    re.IGNORECASE,
)
HIGHEST = re.compile(
    r"\bextremes?\b|\b(?!latest|nearest|honest)\w{3,}iest\b|\b(?:highs?|highest|top(?! line| band)|peak\w*|most|largest|record|best|strongest|range[sd]?|spans?|runs?|ran|between)\b|\b(?:from|of)\s\S{1,12}(?:\s\([^)]*\))?\sto\s\W?\d",
    re.IGNORECASE,
)
LOWEST = re.compile(
    r"\bextremes?\b|\b(?!latest|nearest|honest)\w{3,}iest\b|\b(?:lows?|lowest|least|smallest|worst|weakest|trough\w*|bottom\w*|range[sd]?|spans?|runs?|ran|between)\b|\b(?:from|of)\s\S{1,12}(?:\s\([^)]*\))?\sto\s\W?\d",
    re.IGNORECASE,
)
PER_SHARE = re.compile(r"\b(?:(?:a|per) share|each|apiece|share count)\b", re.IGNORECASE)
SURPRISE = re.compile(
    r"\b(?:beat\w*|miss\w*|surprise\w*|topped|better|worse|than|expected|consensus)\b",
    re.IGNORECASE,
)
EITHER_BASE = re.compile(
    r"\b(?:overhead|upside|room|to go|potential|needs?|retake|reclaim|reach(?:es)?|would|could)\b",
    re.IGNORECASE,
)
"""Words of a way to go, which is measured from where one stands."""
CLOSES = re.compile(
    r"\bclos(?:es|ing prices|ing levels)\b(?! (?:on|at|above|below|under|over(?! (?:the|its|these|those|all)\b)|near)\b)|\b(?:low|high)(?:est)? close\b|\bclosing (?:low|high)\b",
    re.IGNORECASE,
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CALENDAR = frozenset({*WEEKDAYS, *"january february march april may june july august".split()}
                     | {*"september october november december".split()})  # fmt: skip
THAT_DAY = re.compile(r"\b(?:that|the same) (?:day|session)\b", re.IGNORECASE)
WEEKDAY = re.compile(rf"\b(?P<day>{'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
RATIO = re.compile(
    r"\b(?:times|ratio|multiple|p/s|price[- /]to[- /]sales|fraction|factor|for (?:every|each))\b",
    re.IGNORECASE,
)
SUM = re.compile(
    r"\b(?:together|combined|in all|totals?|sum|come to|comes to|altogether)\b", re.IGNORECASE
)
GAP = re.compile(
    r"\b(?:wide|width|spread|gap|range|room|short of|shy of|within|away|further|leaves|moved?|moves|distance|difference|between|"
    r"swing|apart|left|overhead|cushion|buffer|(?<!upper )(?<!lower )(?<!bollinger )bands?|separat\w+)\b",
    re.IGNORECASE,
)
"""Words of a distance, which has no sign."""
OF = re.compile(r"^\s*(?:is\s|a\s|was\s)?of\s", re.IGNORECASE)
BEYOND = re.compile(
    r"^\s(?:above|over|below|under|beneath|higher|lower|ahead|off|north|south|clear|short|shy|outside|inside|beyond|past|through|behind|in front|further)\b",
    re.IGNORECASE,
)
COMPARED = re.compile(
    r"^[\s,]*(?:or\s[$€£\d.%]+,?\s|(?:a|per) share\s|apiece\s|each\s|percentage points\s|points\s|away\s|overhead\s|down\s(?=from)|up\s(?=from))*"
    r"(?:\b(?:above|over|below|under(?! water)|beneath|higher|lower|more|less|cheaper|dearer|better|worse|from|"
    r"ahead|off|north|south|clear|short|shy|outside|inside|beyond|past|through|behind|in front|of|versus|vs|against|than|dear to)\b[\s.]*)+"
    r"(?:(?:its|the|their|an?|our|what|that|this|own)\s)*",
    re.IGNORECASE,
)
BEHIND = re.compile(
    r"\b(?:above|over|below|under|beneath|than|from|of|against|versus|vs|short of|to|past)\s"
    r"(?:(?:its|the|their|an?|our)\s)*$",
    re.IGNORECASE,
)
"""Before a name that something is measured from."""
IT = re.compile(r"^(?:it|that|this|them|own|here)\b", re.IGNORECASE)
_ADJECTIVE = re.compile(
    r"\b(?:is|are|was|were|too|very|so|quite|remains?|relatively|looks?|stays?)\s$", re.IGNORECASE
)
_DESCRIBES = re.compile(
    r"^\s(?:risk|conviction|confidence|for|volatil\w+|debt|leverage|quality|growth|margins?|multiples?|"
    r"volumes?|enough)\b",
    re.IGNORECASE,
)
# Words in capitals that are no tickers.
ABBREVIATIONS = frozenset(
    """
    AI API ATH ATR ADR AGM ASIC BN BOE BOJ BPS CAC CAGR CAPEX CDS CEO CFO CIO COO COVID CPI CPU
    CTO DAX DCF DJIA DMA EBIT EBITDA ECB EMA EPS ESG ETF ETFS EU EUR FCF FDA FED FOMC FTSE FX FY
    GAAP GBP GDP GPU HQ IFRS II III IMF IP IPO IPOS ISO IT IV JPY KPI LLC LLM LTM MA MACD MDAX
    MBS MOM MTD MOU NASDAQ NAV NII NIM NYSE OECD OEM OK OPEC OTC PC PE PEG PB PMI PPI PS QE QOQ
    QT RD ROA ROCE ROE ROI ROIC RSI SAAS SEC SMA SPAC TTM TV UK UN US USA USD VAT VIX VS VWAP
    WACC WTI WTO YOY YTD SP AM PM ET UTC GMT NA NO NOT AND OR BUY SELL HOLD SSD RAM EV EVS CFA
    BB OBV ADX ATM OS PR HR RFP SKU LNG LPG OLED LED USB VC VP EMEA APAC LATAM DACH BRIC KYC AML
    MIN MAX AVG PT TP STOXX TOPIX
    """.split()
)
_STOP = frozenset(
    """
    about after also and are been before both but from has have her his into its more most not
    of on only over said says some than that the their them then there these they this those to
    was were what when which while who will with would share shares made tests headline
    headlines year day first million billion thousand trillion cents cent dollars euros euro
    percent points one two three four five six seven eight nine ten
    """.split()
)
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_ENDING = re.compile(r"(?:ing|ed|es|s|ers?)$")


def stems(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, cut to their first letters."""
    found = re.findall(r"[a-z][a-z'-]{2,}", text.lower())
    cut = (_ENDING.sub("", word)[:6] for word in found if word not in _STOP)
    return frozenset(_DOUBLED.sub(r"\1", word) for word in cut)
