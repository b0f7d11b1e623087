"""Grounding: is a figure in a text said by the evidence? Read `check.py` first.

`facts` reads what the evidence says; `figures`, `names` and `words` read a text. `spoken` says
whose a figure is and of which day, `sentence` which quantity, `claims` whether it claims anything.
`candidates`, `steps`, `bounds`, `counts`, `events` and `headlines` offer what the evidence has.
Pure; the guide that it was built by is tests/data/grounding/README.md.
"""
