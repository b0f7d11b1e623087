"""The offline provider: stated rules that ask for tools and answer like a model, and say so."""
