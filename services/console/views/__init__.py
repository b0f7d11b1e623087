"""Views for people, made from rows."""
