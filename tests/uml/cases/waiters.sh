# Ten programs of one machine wait for a lock and are interrupted. Nobody tells the server of that. Then one program of each machine waits, and the lock gets
# free: both get it, and a program that only tries gets it, too. Each interrupted wait once cost the living ones nine seconds.
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
machine c2 3
touch "$WORK/disk/lock"
for name in c1 c2; do
    on $name "mount -t nfs $HOST:/ /mnt/a"
done
waiter() { begin "$1" "touch /run/shared/waits-$1; timeout 60 flock /mnt/a/lock echo granted"; }
begin c1 'exec 9<> /mnt/a/lock; flock 9; touch /run/shared/held; until [ -e /run/shared/free ]; do sleep 0.05; done; flock -u 9'
holder=$BEGUN
eventually 60 [ -e "$WORK/held" ]
on c2 'for _ in 1 2 3 4 5 6 7 8 9 10; do timeout --signal INT 4 flock /mnt/a/lock true & done; wait'
for name in c1 c2; do
    waiter $name
    waiting+=("$BEGUN")
    eventually 60 [ -e "$WORK/waits-$name" ]
done
fails on c2 'flock --nonblock /mnt/a/lock true'
touch "$WORK/free"
ended "$holder"
for run in "${waiting[@]}"; do same "$(ended "$run")" granted; done
on c1 'for _ in 1 2 3 4 5; do flock --nonblock /mnt/a/lock true; done'
alive
stop_server
