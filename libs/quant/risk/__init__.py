"""The risk rules: what is judged, by which rules, and how much that leaves to buy."""
