"""The first page: what waits for a person, money, what was decided, and what failed."""
