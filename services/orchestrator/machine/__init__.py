"""The state machine: workflows as data, and what follows from an input. Pure."""
