"""WHO acts: one folder is one process and one service in compose.yaml."""
