"""`deskbus demo`: a desk to look at at once, filled with a year of its life."""
