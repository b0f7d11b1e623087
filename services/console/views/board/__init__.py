"""The leaderboard: who did how well, pipeline by pipeline and account by account."""
