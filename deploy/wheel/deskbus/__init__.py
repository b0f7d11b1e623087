"""The folder that holds Deskbus once it is installed: `contracts`, `libs` and `services`.

Installed, they stand in this package, so that an environment that others use gets one name and not
three. They import one another by their own names: `deskbus.__main__` puts this folder on the path
of the program and of its children.
"""
