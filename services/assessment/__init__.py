"""Decides what is worth remembering of a cycle, how past decisions fared, what a strategy is worth.

For the next cycle of the same account or the next design, and for whoever looks at the past one.
"""
