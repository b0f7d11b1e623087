# Whether NATS is well; compose.yaml runs it in the container. Docker restarts what ends, not what is
# unhealthy, so a NATS that only a restart helps is ended here:
# - one that answers nothing, not even its first page, three times in a row;
# - one that has ceased to store while there is room. Without room it stays: it still routes a halt,
#   and a restart would not help.
well() { wget -q --spider -T 3 "http://127.0.0.1:8222$1" 2> /dev/null; }

[ -e /tmp/first ] || touch /tmp/first  # /tmp is new after each start
well /healthz && touch /tmp/well && exit 0
if ! well /; then
  sleep 1; well / && exit 1
  sleep 1; well / && exit 1
  echo "NATS does not answer: it is ended"
  killall -KILL nats-server
  exit 1
fi
[ -e /tmp/well ] || [ -n "$(find /tmp/first -mmin +10)" ] || { echo "NATS is starting"; exit 1; }
sleep 4
well /healthz && exit 0
if ! head -c 16777216 /dev/zero 2> /dev/null > /data/room; then
  rm -f /data/room
  echo "NATS stores nothing: /data is full"
  exit 1
fi
rm -f /data/room
echo "NATS stores nothing and /data has room: it is ended"
killall -TERM nats-server
exit 1
