"""HOW: one folder a concern; each vendor package has one home here."""
