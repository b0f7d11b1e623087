"""`deskbus study`: plan, run, score and report studies."""
