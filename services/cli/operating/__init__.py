"""The commands of an operator: start, check, configure, keep."""
