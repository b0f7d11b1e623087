# Whether Postgres is well; compose.yaml runs it in the container. One that takes connections and
# answers none of them, three times in a row, is ended, so that Docker restarts it; its log makes the
# tables whole again. Over TCP: while the image makes the cluster, Postgres listens on its socket only.
asked() { pg_isready --quiet --timeout=4 --host=127.0.0.1 --username=postgres; }
listens() { timeout 2 bash -c ': < /dev/tcp/127.0.0.1/5432' 2> /dev/null; }

for _ in 1 2 3; do
  asked && exit 0
  [ $? = 2 ] && listens || exit 1
done
echo "Postgres takes connections and answers none: it is ended"
kill -KILL "$(head -n 1 "$PGDATA/postmaster.pid")"
exit 1
