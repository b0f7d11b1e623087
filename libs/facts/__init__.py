"""Facts by name, the reasons that name them, and the words that code writes of both."""
