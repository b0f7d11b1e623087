"""An operator's questions: is it up, does it wait, lose, spend, and who is refused?"""

from deploy.grafana.boards.panels import (
    CHECKS_THAT_FAIL,
    RATE,
    Board,
    FigurePanel,
    Graph,
    PanelRow,
    rarely,
    rate,
)

REQUESTS_REFUSED = (
    "3600 * sum by (outcome) "
    f'(rate(deskbus_answers_total{{question="request", outcome!="accepted"}}{RATE}))'
    " or on() vector(0)"
)
HTTP_REFUSED = (
    "3600 * sum by (status) "
    f'(rate(deskbus_http_requests_total{{status=~"4..|5.."}}{RATE}))'
    " or on() vector(0)"
)

HEALTH = Board(
    "deskbus-health",
    "Deskbus: is it well?",
    "Is it up, does it wait, does it lose anything, what does it spend, who is refused?",
    (
        PanelRow(
            "Is it up?",
            (
                CHECKS_THAT_FAIL,
                FigurePanel(
                    "NATS stores commands",
                    "1: yes. 0: it refuses, most often as its disk is full.",
                    "none",
                    "min(deskbus_bus_stores)",
                    red_to=1,
                ),
                FigurePanel(
                    "Time stood in 24 hours",
                    "Outages of Postgres and NATS: nothing could be committed, all waited.",
                    "s",
                    'sum(increase(deskbus_outage_seconds_sum{away!="desk"}[24h])) or vector(0)',
                    red_from=300,
                ),
                Graph(
                    "Outages in an hour",
                    "That have ended, by what was away; desk: no orchestrator was at work.",
                    "none",
                    (("sum by (away) (increase(deskbus_outage_seconds_count[1h]))", "{{away}}"),),
                ),
                Graph(
                    "Seconds that the desk's clock stood, an hour",
                    "By what was away; limits and leases stood as long.",
                    "s",
                    (("sum by (away) (increase(deskbus_outage_seconds_sum[1h]))", "{{away}}"),),
                ),
                Graph(
                    "Not ready",
                    "By process and check.",
                    "none",
                    (
                        (
                            "max by (process, check) (deskbus_ready == bool 0)",
                            "{{process}} {{check}}",
                        ),
                    ),
                ),
                Graph(
                    "Figures that could not be read, an hour",
                    "They are left out of panels and alerts meanwhile.",
                    "none",
                    (
                        (
                            f"3600 * {rarely('deskbus_samples_failed_total', 'sample')}",
                            "{{sample}}",
                        ),
                    ),
                ),
            ),
        ),
        PanelRow(
            "Does it wait?",
            (
                Graph(
                    "Untaken work",
                    "Operations whose command nobody has claimed or answered; the oldest's age.",
                    "short",
                    (
                        ("max(deskbus_outbox_operations)", "operations"),
                        ("max(deskbus_outbox_seconds)", "oldest, s"),
                    ),
                ),
                Graph(
                    "Cycles that began and ended, an hour",
                    "Where more begin than end, something is in their way.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_cycles_accepted_total', 'kind')}",
                            "{{kind}} began",
                        ),
                        (f"3600 * {rate('deskbus_cycles_total', 'kind')}", "{{kind}} ended"),
                    ),
                ),
                Graph(
                    "Studies that rested, commands an hour",
                    "Sent once the live cycles that they made way for had ended.",
                    "none",
                    (
                        (
                            f"3600 * sum(rate(deskbus_study_commands_resumed_total{RATE}))",
                            "sent after a rest",
                        ),
                    ),
                ),
                Graph(
                    "A market source is to be left alone",
                    "For how long, when it was asked last.",
                    "s",
                    (
                        (
                            "max by (source) (deskbus_market_rests_seconds) or on() vector(0)",
                            "{{source}}",
                        ),
                    ),
                ),
                Graph(
                    "Questions to market sources, a minute",
                    "By outcome; kept: answered from the cache.",
                    "none",
                    (
                        (
                            f"60 * {rarely('deskbus_market_calls_total', 'what, outcome')}",
                            "{{what}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "Waited for rate limits of models",
                    "Seconds a second, over all calls.",
                    "s",
                    ((rarely("deskbus_model_wait_seconds_total", "provider"), "{{provider}}"),),
                ),
            ),
        ),
        PanelRow(
            "Does it lose anything?",
            (
                FigurePanel(
                    "Effects without an answer, 24 hours",
                    "Orders are safe, and wait: execution does not answer.",
                    "none",
                    "sum(increase(deskbus_effects_unanswered_total[24h])) or vector(0)",
                    red_from=1,
                ),
                FigurePanel(
                    "Inputs not stored, 24 hours",
                    "Results that Postgres refused; each is in the log.",
                    "none",
                    "sum(increase(deskbus_inputs_refused_total[24h])) or vector(0)",
                    red_from=1,
                ),
                Graph(
                    "Operations that failed, an hour",
                    "By the failure's code.",
                    "none",
                    ((f"3600 * {rarely('deskbus_failures_total', 'code')}", "{{code}}"),),
                ),
                Graph(
                    "Leases lost, an hour",
                    "Work that was taken from a service which stood still; others do it again.",
                    "none",
                    ((f"3600 * {rarely('deskbus_leases_lost_total', 'service')}", "{{service}}"),),
                ),
                Graph(
                    "Commands that came again, an hour",
                    "Delivered by NATS once more, and sent once more by the sweep.",
                    "none",
                    (
                        (
                            f"3600 * {rarely('deskbus_commands_redelivered_total', 'service')}",
                            "{{service}} delivered again",
                        ),
                        (
                            f"3600 * {rarely('deskbus_sweep_resent_total', 'subject')}",
                            "{{subject}} sent again",
                        ),
                    ),
                ),
                Graph(
                    "Late work that was ended, an hour",
                    "Operations and cycles past their time limit.",
                    "none",
                    ((f"3600 * {rarely('deskbus_sweep_ended_total', 'what')}", "{{what}}"),),
                ),
                Graph(
                    "Commits that were folded again, an hour",
                    "Another orchestrator was first, or Postgres was lost; nothing is done twice.",
                    "none",
                    ((f"3600 * {rarely('deskbus_commit_retries_total', 'why')}", "{{why}}"),),
                ),
            ),
        ),
        PanelRow(
            "What does it spend?",
            (
                FigurePanel(
                    "Of the day's money",
                    "US dollars left of the limit, as a share.",
                    "percentunit",
                    "deskbus:day_cost_left:ratio",
                    red_to=0.1,
                ),
                FigurePanel(
                    "Of the day's tokens",
                    "Left of the limit, as a share.",
                    "percentunit",
                    "max(deskbus_day_tokens_left) / (max(deskbus_day_tokens_limit) > 0)",
                    red_to=0.1,
                ),
                FigurePanel(
                    "Spent in 24 hours",
                    "As the prices in force say.",
                    "currencyUSD",
                    "sum(increase(deskbus_model_cost_usd_total[24h])) or vector(0)",
                ),
            ),
        ),
        PanelRow(
            "Who is refused?",
            (
                FigurePanel(
                    "Forged commands, 24 hours",
                    "That no orchestrator has on record; nothing was done.",
                    "none",
                    "sum(increase(deskbus_commands_not_on_record_total[24h])) or vector(0)",
                    red_from=1,
                ),
                FigurePanel(
                    "Refusals not kept, 24 hours",
                    "One sender's, above its rate: a flood.",
                    "none",
                    "sum(increase(deskbus_refusals_not_kept_total[24h])) or vector(0)",
                    red_from=1,
                ),
                Graph(
                    "Refused by services, an hour",
                    "Commands that nobody could read, or that are not on record.",
                    "none",
                    (
                        (
                            f"3600 * {rarely('deskbus_dead_letters_total', 'service')}",
                            "{{service}} unreadable",
                        ),
                        (
                            f"3600 * {rarely('deskbus_commands_not_on_record_total', 'service')}",
                            "{{service}} not on record",
                        ),
                    ),
                ),
                Graph(
                    "Dropped unread, an hour",
                    "By why; the log names the sender.",
                    "none",
                    ((f"3600 * {rarely('deskbus_dropped_messages_total', 'why')}", "{{why}}"),),
                ),
                Graph(
                    "Requests refused, an hour",
                    "Over the bus.",
                    "none",
                    (
                        (
                            REQUESTS_REFUSED,
                            "{{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "HTTP requests refused, an hour",
                    "By status.",
                    "none",
                    (
                        (
                            HTTP_REFUSED,
                            "{{status}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
