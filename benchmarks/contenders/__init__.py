"""One module a contender; each runs the same seven instant steps and speaks `protocol`."""
