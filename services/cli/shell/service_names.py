"""The names of a desk's services and servers, known without loading any."""

SERVICES = (
    *("provisioner", "orchestrator", "sentiment", "research", "trader", "risk", "execution"),
    *("assessment", "exit_signal", "strategy_design", "strategy_training", "strategy_backtest"),
    *("reporter", "console", "notifier"),
)
SERVERS = ("nats", "postgres")
"""Servers that a desk starts; each has a log in its own words."""
