"""Tables in the docs that are made from code."""
