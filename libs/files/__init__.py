"""Tables that people bring: read in whatever form they come, checked, refused with a place."""
