"""Postgres: pools by role, migrations, named queries. The only home of asyncpg."""
