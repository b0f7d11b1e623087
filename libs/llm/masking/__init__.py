"""The view of a masked arm of a study: codes for names, sessions for dates, ratios for levels."""
