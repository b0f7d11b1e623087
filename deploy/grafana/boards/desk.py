"""What runs, what failed, and who is told."""

from deploy.grafana.boards.panels import (
    CHECKS_THAT_FAIL,
    RATE,
    Board,
    FigurePanel,
    Graph,
    PanelRow,
    p95,
    rate,
)

DESK = Board(
    "deskbus-desk",
    "Deskbus: desk",
    "What runs, what failed, what waits.",
    (
        PanelRow(
            "Now",
            (
                CHECKS_THAT_FAIL,
                FigurePanel(
                    "Cycles running",
                    "Of all kinds.",
                    "none",
                    "sum(max by (kind) (deskbus_cycles_running)) or vector(0)",
                ),
                FigurePanel(
                    "Waiting for a person",
                    "Proposals.",
                    "none",
                    "max(deskbus_approvals_waiting)",
                ),
                FigurePanel(
                    "Oldest untaken work",
                    "Operations whose command nobody has claimed or answered.",
                    "s",
                    "max(deskbus_outbox_seconds)",
                    red_from=120,
                ),
                FigurePanel(
                    "Dead letters", "Kept.", "none", "max(deskbus_dead_letters_kept)", red_from=1
                ),
                FigurePanel("Halts", "That stand.", "none", "max(deskbus_halts)", red_from=1),
            ),
        ),
        PanelRow(
            "Cycles",
            (
                Graph(
                    "Cycles that ended, an hour",
                    "By kind and status.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_cycles_total', 'kind, status')}",
                            "{{kind}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a cycle took",
                    "95% were faster; waiting for people included.",
                    "s",
                    ((p95("deskbus_cycle_seconds", "kind"), "{{kind}}"),),
                ),
            ),
        ),
        PanelRow(
            "Messages to people",
            (
                Graph(
                    "Messages, an hour",
                    "By channel and what became of them; one that failed is tried again.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_notices_total', 'channel, outcome')}",
                            "{{channel}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "Waiting and overdue",
                    "Messages of a channel that wait, and how late the oldest is.",
                    "short",
                    (
                        ("max by (channel) (deskbus_notices_waiting)", "{{channel}} waiting"),
                        (
                            "max by (channel) (deskbus_notices_overdue_seconds)",
                            "{{channel}} late, s",
                        ),
                        (
                            "max by (channel) (deskbus_notice_failures)",
                            "{{channel}} failed tries",
                        ),
                    ),
                ),
                Graph(
                    "From an event to its message",
                    "95% were faster; digests and quiet hours included.",
                    "s",
                    ((p95("deskbus_notice_seconds", "channel"), "{{channel}}"),),
                ),
            ),
        ),
        PanelRow(
            "Operations",
            (
                Graph(
                    "Operations that ended, a minute",
                    "By step; failed ones apart.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_operations_total', 'step, status')}",
                            "{{step}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a handler worked",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_command_seconds", "subject"), "{{subject}}"),),
                ),
            ),
        ),
        PanelRow(
            "Processes",
            (
                Graph(
                    "CPU",
                    "Cores in use, by process.",
                    "none",
                    ((f"sum by (process) (rate(process_cpu_seconds_total{RATE}))", "{{process}}"),),
                ),
                Graph(
                    "Memory",
                    "Resident, by process.",
                    "bytes",
                    (("sum by (process) (process_resident_memory_bytes)", "{{process}}"),),
                ),
                Graph(
                    "HTTP requests a second",
                    "By route and status.",
                    "reqps",
                    (
                        (
                            rate("deskbus_http_requests_total", "route, status"),
                            "{{route}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "Until the answer begins",
                    "95% of HTTP requests were faster.",
                    "s",
                    ((p95("deskbus_http_seconds", "route"), "{{route}}"),),
                ),
            ),
        ),
    ),
)
