"""A strategy for people: on one page, and as files that are read and edited."""
