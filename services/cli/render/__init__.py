"""Cycles, accounts and strategies, drawn for a terminal."""
