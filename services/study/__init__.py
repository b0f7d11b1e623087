"""Studies: asks the desk for their cells as any client does, keeps how far each is, and scores
them."""
