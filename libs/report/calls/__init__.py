"""Calls of an operation as people read them: one in a sentence, a model's as a chat. Pure."""
