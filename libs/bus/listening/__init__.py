"""Hear events in a program of one's own, on FastStream: typed, in order, each once, none missed."""
