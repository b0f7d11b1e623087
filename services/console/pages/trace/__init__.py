"""The trace of a cycle: its tree over time, one operation, one call. Only these pages need it."""
