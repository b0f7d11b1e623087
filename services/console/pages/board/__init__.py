"""The leaderboard's page, and how its rows are drawn."""
