"""The bus: NATS and JetStream by nats-py. No other module publishes."""
