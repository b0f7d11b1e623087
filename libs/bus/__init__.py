"""The bus: NATS JetStream by FastStream and nats-py. No other module publishes."""
