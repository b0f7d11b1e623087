"""Decisions that were made elsewhere: read from a file, put on the sessions of a source, scored."""
