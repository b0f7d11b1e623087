"""Which reported concepts make which figure, the better one first. Pure.

Companies change the name of a figure over the years: revenue was `SalesRevenueNet` to many until
2018, when ASC 606 brought `RevenueFromContractWithCustomer...`. A total comes before what may be a
part of it.
"""

REVENUE = (
    "Revenues",
    "SalesRevenueNet",
    "RevenueFromContractWithCustomerExcludingAssessedTax",
    "RevenueFromContractWithCustomerIncludingAssessedTax",
    "SalesRevenueGoodsNet",
)
PROFIT = ("NetIncomeLoss", "NetIncomeLossAvailableToCommonStockholdersBasic", "ProfitLoss")
OPERATING_PROFIT = ("OperatingIncomeLoss",)
EPS = ("EarningsPerShareDiluted", "EarningsPerShareBasicAndDiluted")
DIVIDENDS = ("CommonStockDividendsPerShareDeclared", "CommonStockDividendsPerShareCashPaid")
EQUITY = (
    "StockholdersEquity",
    "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
)
SHARES = ("EntityCommonStockSharesOutstanding", "CommonStockSharesOutstanding")
DEBT_IN_ALL = ("DebtLongtermAndShorttermCombinedAmount",)
LONG_TERM_DEBT = (
    "LongTermDebt",
    "LongTermDebtAndCapitalLeaseObligationsIncludingCurrentMaturities",
)
"""With the part that is due within a year."""
LONG_TERM_DEBT_NONCURRENT = ("LongTermDebtNoncurrent", "LongTermDebtAndCapitalLeaseObligations")
CURRENT_DEBT = ("DebtCurrent",)
"""All that is due within a year."""
CURRENT_LONG_TERM_DEBT = ("LongTermDebtCurrent", "LongTermDebtAndCapitalLeaseObligationsCurrent")
BORROWINGS = ("ShortTermBorrowings", "CommercialPaper")

WORDS = {
    REVENUE: "revenue",
    PROFIT: "profit",
    OPERATING_PROFIT: "operating profit",
    EPS: "earnings per share",
    DIVIDENDS: "dividends per share",
    EQUITY: "equity",
    SHARES: "shares outstanding",
}
"""What a figure is called where it is told to be absent."""

CONCEPTS = frozenset(
    (
        *REVENUE,
        *PROFIT,
        *OPERATING_PROFIT,
        *EPS,
        *DIVIDENDS,
        *EQUITY,
        *SHARES,
        *DEBT_IN_ALL,
        *LONG_TERM_DEBT,
        *LONG_TERM_DEBT_NONCURRENT,
        *CURRENT_DEBT,
        *CURRENT_LONG_TERM_DEBT,
        *BORROWINGS,
    )
)
"""All that is read: a source need not keep others."""
