"""Accounts, orders and rules."""

from deploy.grafana.boards.panels import Board, Figure, Graph, Row, rate

LEDGER = Board(
    "deskbus-ledger",
    "Deskbus: ledger",
    "Accounts, orders and rules.",
    (
        Row(
            "Now",
            (
                Figure(
                    "Accounts out of balance",
                    "Anything but 0 is a defect.",
                    "none",
                    "max(deskbus_ledger_imbalance)",
                    red_from=1,
                ),
                Figure("Halts", "That stand.", "none", "max(deskbus_halts)", red_from=1),
                Figure(
                    "Orders in 24 hours",
                    "Placed at the broker.",
                    "none",
                    'sum(increase(deskbus_orders_total{status="placed"}[24h])) or vector(0)',
                ),
            ),
        ),
        Row(
            "Books",
            (
                Graph(
                    "Equity",
                    "At the newest close, by account.",
                    "short",
                    (
                        (
                            "max by (account, currency) (deskbus_account_equity)",
                            "{{account}} {{currency}}",
                        ),
                    ),
                ),
                Graph(
                    "Cash",
                    "Then, by account.",
                    "short",
                    (
                        (
                            "max by (account, currency) (deskbus_account_cash)",
                            "{{account}} {{currency}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Orders",
            (
                Graph(
                    "Orders an hour",
                    "By side and what became of them.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_orders_total', 'side, status')}",
                            "{{side}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "What the rules did, an hour",
                    "Picks cut or vetoed, by rule.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_rule_outcomes_total', 'rule, outcome')}",
                            "{{rule}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
