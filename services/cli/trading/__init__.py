"""The commands of a trader: ask, look, approve, halt."""
