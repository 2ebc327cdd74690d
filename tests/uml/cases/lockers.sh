# Four programs of two machines take one lock by turns, each kind of lock, while the server is killed again and again. No two have it at
# once, no turn's bytes are lost, and no program sees an error.
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
machine c2 3
echo 0 > "$WORK/disk/counter"
mkdir "$WORK/turns"
turns() { cat "$WORK"/turns/* | wc -c; }
# Nobody was refused, so nobody has ended.
have_turned() { for run in "${running[@]}"; do ! has_ended "$run" || wrong "$(ended "$run")"; done; [ "$(turns)" -ge "$1" ]; }
for name in c1 c2; do
    on $name "mount -t nfs $HOST:/ /mnt/a"
done
for locker in c1:fcntl c1:ofd c2:flock c2:fcntl; do
    begin ${locker%:*} "python3 /run/rig/lockers.py ${locker#*:} /mnt/a/counter /run/shared/held 1000000 /run/shared/stop /run/shared/turns/$locker"
    running+=("$BEGUN")
done
eventually 60 eval '[ "$(ls "$WORK/turns" | wc -l)" = 4 ]'
for kill in 1 2 3; do
    eventually 200 have_turned $(($(turns) + 8))
    echo "before kill $kill after $SECONDS s: $(turns) turns"
    killed
done
eventually 200 have_turned $(($(turns) + 8))
touch "$WORK/stop"
for run in "${running[@]}"; do ended "$run"; done
same "$(on c1 'cat /mnt/a/counter')" "$(turns)" "turns"
alive
stop_server
same "$(cat "$WORK/disk/counter")" "$(turns)" "turns on the disk"
