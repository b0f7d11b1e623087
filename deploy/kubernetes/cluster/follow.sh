#!/bin/sh
# Before this Postgres starts: where the other one is the primary, become its standby.
#
# So the old primary, when it comes back after the standby was promoted, throws away what it alone
# has (none of it was acknowledged) and follows. Each promotion begins a later timeline: who has seen one
# that the other has not is never thrown away. Nothing is promoted here: that is a person's, or an
# operator's, decision (docs/deployment.md).
set -eu

number=${POD_NAME##*-}
other=${OTHER_HOST:-postgres-$((1 - number)).postgres}
PGPASSWORD=$(cat "${PASSWORD_FILE:-/run/secrets/postgres_postgres.password}")
export PGPASSWORD PGCONNECT_TIMEOUT=5 PGUSER=postgres PGAPPNAME="$POD_NAME"

role=$(psql --no-psqlrc --no-password --host="$other" --dbname=postgres --tuples-only --no-align \
  --command="select case when pg_is_in_recovery() then 'standby'
    else 'primary ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) end" || echo away)
copying=$PGDATA.copying
has_data=no
if [ -e "$copying" ]; then
  has_data=half
elif [ -s "$PGDATA/PG_VERSION" ]; then
  has_data=yes
fi
echo "this is $POD_NAME, data here: $has_data; $other is $role" >&2

case "$role/$has_data" in
  primary*/yes)
    if [ -f "$PGDATA/standby.signal" ]; then exit 0; fi
    theirs=${role#primary }
    own=$({ echo 00000001; ls "$PGDATA/pg_wal"; } \
      | sed -n 's/^\([0-9A-F]\{8\}\)\(\.history\)\{0,1\}$/\1/p' | sort | tail -n 1)
    if [ "$(printf '%s\n' "$own" "$theirs" | sort | tail -n 1)" = "$own" ]; then
      echo "timeline $own is here, and only $theirs on $other: a person decides whose data stay" >&2
      exit 1
    fi
    echo "this was a primary once: its copy is made anew" >&2 ;;
  primary*/*) ;;
  standby/no)
    echo "the data of the primary is gone; promote $other, which has all of it" >&2
    exit 1 ;;
  away/no)
    if [ "$number" = 0 ]; then exit 0; fi
    echo "the primary is not there yet" >&2
    exit 1 ;;
  */half)
    echo "a copy of $other was not finished, and it is no primary now" >&2
    exit 1 ;;
  *) exit 0 ;;
esac
mkdir -p "$PGDATA"
chmod 0700 "$PGDATA"
touch "$copying"
find "$PGDATA" -mindepth 1 -delete
pg_basebackup --pgdata="$PGDATA" --host="$other" --no-password --checkpoint=fast \
  --wal-method=stream --write-recovery-conf
rm "$copying"
