"""Measurements of the desk and its peers; `make bench` runs them, docs/benchmarks.md shows them."""
