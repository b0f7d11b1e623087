"""Daily reports: writes down what an account's session brought, for a person to read.

What it says is the console's; this service alone writes below the reports' directory.
"""
