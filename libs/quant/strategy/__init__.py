"""Strategies: features, models, rules, backtest, and the gates that a result must pass."""
