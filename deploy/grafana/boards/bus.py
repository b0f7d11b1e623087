"""Commands, questions, commits and events on their way."""

from deploy.grafana.boards.panels import RATE, Board, Graph, Row, p95, rate

AVERAGE_INPUTS = (
    f"sum(rate(deskbus_commit_inputs_sum{RATE})) / sum(rate(deskbus_commit_inputs_count{RATE}))"
)

BUS = Board(
    "deskbus-bus",
    "Deskbus: bus",
    "Commands, questions, commits and events on their way.",
    (
        Row(
            "Commands",
            (
                Graph(
                    "Waiting in the stream",
                    "Commands that no service has taken.",
                    "none",
                    (("max by (subject) (deskbus_consumer_pending)", "{{subject}}"),),
                ),
                Graph(
                    "How long a command waited",
                    "95% were taken sooner.",
                    "s",
                    ((p95("deskbus_command_queue_seconds", "subject"), "{{subject}}"),),
                ),
                Graph(
                    "Dealt with, a second",
                    "By service and outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_commands_total", "service, outcome"),
                            "{{service}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "Taken and not acknowledged",
                    "By subject.",
                    "none",
                    (("max by (subject) (deskbus_consumer_unacknowledged)", "{{subject}}"),),
                ),
                Graph(
                    "Being worked on",
                    "By service.",
                    "none",
                    (("sum by (service) (deskbus_commands_running)", "{{service}}"),),
                ),
                Graph(
                    "Dead letters and inputs refused",
                    "What could not be used, an hour.",
                    "none",
                    (
                        ("max(deskbus_dead_letters_kept)", "dead letters kept"),
                        (f"3600 * sum(rate(deskbus_inputs_refused_total{RATE}))", "inputs refused"),
                    ),
                ),
            ),
        ),
        Row(
            "The orchestrator",
            (
                Graph(
                    "How long a commit took",
                    "Half, and 95%, were faster.",
                    "s",
                    (
                        (p95("deskbus_commit_seconds", "process"), "95% {{process}}"),
                        (
                            p95("deskbus_commit_seconds", "process").replace("0.95", "0.5"),
                            "50% {{process}}",
                        ),
                    ),
                ),
                Graph(
                    "Inputs in a commit",
                    "On average.",
                    "none",
                    (
                        (
                            AVERAGE_INPUTS,
                            "inputs",
                        ),
                    ),
                ),
                Graph(
                    "Inputs that wait",
                    "By orchestrator.",
                    "none",
                    (("sum by (process) (deskbus_inputs_waiting)", "{{process}}"),),
                ),
                Graph(
                    "Answered, a second",
                    "Claims, records, results and requests by their outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_answers_total", "question, outcome"),
                            "{{question}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Events",
            (
                Graph(
                    "Published, a second",
                    "By type.",
                    "none",
                    ((rate("deskbus_events_total", "type"), "{{type}}"),),
                ),
                Graph(
                    "Behind",
                    "Events that are still to be published, and how old the oldest is.",
                    "none",
                    (
                        ("max(deskbus_relay_unpublished)", "events"),
                        ("max(deskbus_relay_seconds)", "seconds"),
                    ),
                ),
            ),
        ),
        Row(
            "Questions",
            (
                Graph(
                    "Answered, a second",
                    "By subject and outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_questions_total", "subject, outcome"),
                            "{{subject}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long an answer took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_question_seconds", "subject"), "{{subject}}"),),
                ),
            ),
        ),
    ),
)
