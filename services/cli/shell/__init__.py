"""What all commands share: the terminal, the running desk, requests, problems."""
