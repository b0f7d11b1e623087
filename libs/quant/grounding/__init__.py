"""Grounding: is a figure in a text said by the evidence? Read `check.py` first.

`facts` reads what the evidence says; `figures` and `words` read a text; `sentence` says what each
figure speaks of; `follows`, `counts` and `headlines` are the ways in which a claim may follow.
Pure; the guide that it was built by is tests/data/grounding/README.md.
"""
