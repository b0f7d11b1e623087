"""Who may do what: NATS accounts and keys, Postgres passwords, certificates and TLS."""
