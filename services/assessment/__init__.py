"""Decides what is worth remembering of a cycle.

For the next cycle of the same account.
"""
