"""Statistics of a study: what a number of decisions can show, and what it cannot. Pure."""
