"""The HTTP API: its paths, what they take and answer, and what is passed on to an owner."""
