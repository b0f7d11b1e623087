"""Reports for people: one file each, readable without a network, a script or a desk. Pure."""
