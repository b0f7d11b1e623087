"""Measurements of the desk and its peers: `make bench`. docs/benchmarks/README.md shows them."""
