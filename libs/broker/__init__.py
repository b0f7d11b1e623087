"""Brokers: who fills an order, at what price, for which fee."""
