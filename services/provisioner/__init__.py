"""The provisioner: makes the streams and consumers, for everyone who only binds to them."""
