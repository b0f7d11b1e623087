"""HTTP: who is let in, how refusals are told, and the server that both of our APIs run on."""
