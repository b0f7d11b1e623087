"""Trading days of a month, a quarter and a year, as figures over daily bars count them."""

MONTH_BARS = 21
QUARTER_BARS = 63
YEAR_BARS = 252
