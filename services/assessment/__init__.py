"""Decides what is worth remembering of a cycle, and how past decisions fared.

For the next cycle of the same account, and for whoever looks at the past one.
"""
