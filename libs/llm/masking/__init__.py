"""What a masked arm of a study sees: codes for names, sessions for dates, ratios for levels."""
