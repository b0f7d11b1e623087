#!/bin/sh
# As the official image of Postgres starts, as far as compose.yaml needs it: makes the cluster, then
# runs Postgres as its own user.
set -eu
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

if [ "${1:-}" = postgres ] || [ "${1#-}" != "${1:-}" ]; then
  [ "$1" = postgres ] || set -- postgres "$@"
  if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chown -R postgres:postgres /var/lib/postgresql /var/run/postgresql
    chmod 0700 "$PGDATA"
    if [ ! -s "$PGDATA/PG_VERSION" ]; then
      install --owner=postgres --mode=0600 "$POSTGRES_PASSWORD_FILE" /tmp/password
      # shellcheck disable=SC2086 - several words
      as_postgres initdb --username=postgres --pwfile=/tmp/password ${POSTGRES_INITDB_ARGS:-}
      rm /tmp/password
      echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    fi
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
  fi
fi
exec "$@"
