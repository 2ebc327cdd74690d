# A machine in two networks that mounts both addresses of the server is one client, with a connection over each of them (session trunking,
# RFC 8881 2.10.5); another machine is another client.
disk "$WORK/disk"
ip address add 10.78.0.1/24 dev machines
# shellcheck disable=SC2086
"$PROGRAM" serve "$WORK/disk" --listen 0.0.0.0:2049 ${SERVE/10.77.0.0\/24/10.77.0.0\/24,10.78.0.0\/24} --state "$WORK/state" \
    --control "$WORK/control" >> "$WORK/server.log" 2>&1 &
SERVER=$!
eventually 60 answers $HOST
machine c1 2
machine c2 3
for number in 2 3; do
    on c$((number - 1)) "ip address add 10.78.0.$number/24 dev vec0
        mount -t nfs -o vers=4.2,max_connect=4 $HOST:/ /mnt/a
        mount -t nfs -o vers=4.2,max_connect=4 10.78.0.1:/ /mnt/b"
done
clients() { "$PROGRAM" clients --control "$WORK/control" --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["clients"]))'; }
same "$(clients)" 2
on c1 'echo bytes > /mnt/a/file; sync /mnt/a/file'
same "$(on c1 'cat /mnt/b/file')" bytes
# Both connections of a machine carry calls of the one session.
for network in 10.77.0 10.78.0; do
    same "$(ss -Htn state established "sport = 2049" "dst = $network.2" | wc -l)" 1 "connections in $network"
done
same "$(on c1 "grep -c '^v4 ' /proc/fs/nfsfs/servers")" 1
# After a kill the machine comes back over each of its addresses, as the client that it was.
on c1 'exec 9> /mnt/a/locked; flock -x 9; sleep 100000 & echo $! > /tmp/holder'
fails on c2 'flock -n /mnt/b/locked true'
kill -KILL $SERVER
wait $SERVER 2> /dev/null || true
# shellcheck disable=SC2086
"$PROGRAM" serve "$WORK/disk" --listen 0.0.0.0:2049 ${SERVE/10.77.0.0\/24/10.77.0.0\/24,10.78.0.0\/24} --state "$WORK/state" \
    --control "$WORK/control" >> "$WORK/server.log" 2>&1 &
SERVER=$!
eventually 60 answers $HOST
on c1 'echo more > /mnt/b/other; cat /mnt/a/other'
fails on c2 'flock -n /mnt/b/locked true'
on c1 'kill $(cat /tmp/holder)'
on c2 'flock /mnt/b/locked true'
same "$(clients)" 2
alive
stop_server
