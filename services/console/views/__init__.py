"""What people are shown, made from rows."""
