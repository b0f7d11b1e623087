"""The static site of docs/: its pages in four parts, and the reference as code says it."""
