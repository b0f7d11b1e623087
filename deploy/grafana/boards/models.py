"""What models are asked, and what that costs."""

from deploy.grafana.boards.panels import Board, Figure, Graph, Row, p95, rate

MODELS = Board(
    "deskbus-models",
    "Deskbus: models and cost",
    "What models are asked, what they answer, and what that costs.",
    (
        Row(
            "Budget",
            (
                Figure(
                    "Left of the day, US dollars",
                    "Of the UTC day.",
                    "currencyUSD",
                    "max(deskbus_day_cost_usd_left)",
                    red_to=1,
                ),
                Figure(
                    "Left of the day, tokens",
                    "Of the UTC day.",
                    "short",
                    "max(deskbus_day_tokens_left)",
                ),
                Figure(
                    "Spent in 24 hours",
                    "As the prices in force say.",
                    "currencyUSD",
                    "sum(increase(deskbus_model_cost_usd_total[24h]))",
                ),
            ),
        ),
        Row(
            "Calls",
            (
                Graph(
                    "Calls a minute",
                    "By provider and outcome.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_model_calls_total', 'provider, outcome')}",
                            "{{provider}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a model took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_model_call_seconds", "provider"), "{{provider}}"),),
                ),
                Graph(
                    "Share of calls that failed",
                    "Of 15 minutes.",
                    "percentunit",
                    (("deskbus:model_calls_failed:ratio15m", "{{provider}}"),),
                ),
                Graph(
                    "Answers refused",
                    "That did not keep to their contract, a minute.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_model_answers_total', 'step, outcome')}",
                            "{{step}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Cost",
            (
                Graph(
                    "US dollars an hour",
                    "By provider and step.",
                    "currencyUSD",
                    (
                        (
                            f"3600 * {rate('deskbus_model_cost_usd_total', 'provider, step')}",
                            "{{provider}} {{step}}",
                        ),
                    ),
                ),
                Graph(
                    "Tokens a minute",
                    "By provider and sort.",
                    "short",
                    (
                        (
                            f"60 * {rate('deskbus_model_tokens_total', 'provider, sort')}",
                            "{{provider}} {{sort}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Tools",
            (
                Graph(
                    "Tools called, a minute",
                    "By tool and outcome.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_tool_calls_total', 'tool, outcome')}",
                            "{{tool}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a tool took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_tool_call_seconds", "tool"), "{{tool}}"),),
                ),
            ),
        ),
    ),
)
