"""Exit signals: says whether a held position should be sold, how much of it, and why.

By rules in code on prices up to as_of, for whoever asks. It proposes; it never orders.
"""
