# A machine reads files a second time without asking, by delegations, and another machine's change is seen at once. A machine that sleeps
# with a delegation delays a writer until its lease is over, and learns when it wakes that it has lost it.
disk "$WORK/disk"
mkdir "$WORK/disk/many"
for at in $(seq 200); do echo "$at" > "$WORK/disk/many/$at"; done
for name in shared asleep removed; do echo before > "$WORK/disk/$name"; done
serve "$WORK/disk" --sole --delegations read
machine c1 2
machine c2 3
# With access times the second reading asks once for each of these, which the first has changed.
for name in c1 c2; do on $name "mount -t nfs -o noatime $HOST:/ /mnt/a"; done
figure() {
    "$PROGRAM" stat --control "$WORK/control" --json | python3 -c "import json, sys; nfs = json.load(sys.stdin)['nfs']; print($1)"
}
calls() { figure "nfs['calls']['nfs_v4_compound']"; }
reads='cat $(seq -f /mnt/a/many/%g 200) | md5sum'
first=$(calls)
before=$(on c1 "$reads")
second=$(calls)
[ "$(figure "nfs['delegations']")" -ge 200 ] || wrong "$(figure "nfs['delegations']") delegations"
same "$(on c1 "$reads")" "$before"
third=$(calls)
echo "200 files: $((second - first)) calls, then $((third - second))"
[ $((second - first)) -ge 400 ] || wrong "$((second - first)) calls for the first reading"
# Looks at directories, and a renewal of the lease; without delegations each file takes an OPEN and a CLOSE.
[ $((third - second)) -le 40 ] || wrong "$((third - second)) calls for the second reading"
# A change of another machine recalls the delegation before it is made. Who reads then sees it.
for at in 1 2 3; do
    on c1 'cat /mnt/a/shared > /dev/null'
    on c2 "echo $at > /mnt/a/shared"
    same "$(on c1 'cat /mnt/a/shared')" "$at"
done
on c1 'cat /mnt/a/removed > /dev/null'
on c2 'rm /mnt/a/removed'
fails on c1 'cat /mnt/a/removed' > /dev/null 2>&1
# The reader's own machine writes what it has a delegation of.
on c1 'cat /mnt/a/many/7 > /dev/null; echo own > /mnt/a/many/7; chmod 600 /mnt/a/many/7; mv /mnt/a/many/7 /mnt/a/many/8'
same "$(on c2 'cat /mnt/a/many/8')" own
same "$(figure "nfs['delegations_revoked']")" 0
# A sleeper.
same "$(on c1 'cat /mnt/a/asleep')" before
suspend c1
begin c2 'echo after > /mnt/a/asleep'
writing=$BEGUN
# Nobody else waits. The writer's machine locks its own directory while it asks.
on c2 'echo other > /mnt/a/many/other'
[ ! -e "$writing.rc" ] || wrong "a machine had a delegation, and nobody waited for it"
ended "$writing"
[ "$(figure "nfs['delegations_revoked']")" -ge 1 ] || wrong "nothing was revoked"
resume c1
sees() { [ "$(on c1 'cat /mnt/a/asleep')" = after ]; }
eventually 120 sees
on c1 'echo awake > /mnt/a/asleep'
same "$(on c2 'cat /mnt/a/asleep')" awake
# The server's next process has the clients' delegations, and recalls them.
stop_server
serve "${SERVED[@]}"
on c1 'cat /mnt/a/many/9 > /dev/null'
on c2 'echo next > /mnt/a/many/9'
same "$(on c1 'cat /mnt/a/many/9')" next
alive
stop_server
