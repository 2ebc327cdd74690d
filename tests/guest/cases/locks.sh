# Locks at version 4.2, between two mounts of Linux's own client and a mount of ours: flock, fcntl, waits with and without an
# interrupt, the end of a program, SQLite and git. The client keeps the two mounts' locks apart, so only the server can join them.
# limit: 1800
OPTIONS=hard,nosharecache
disk /dev/vdc $DATA
mkdir -p /mnt/own $WORK
later "umount -l /mnt/own; rm -rf $WORK"
serve $DATA --mount /mnt/own
eventually 60 mountpoint -q /mnt/own
mounted /mnt/a
mounted /mnt/b
grep -q ' /mnt/a nfs4 .*vers=4.2' /proc/mounts || wrong "a mount without a version is not of 4.2"
places="a b own"
waiters=()
touch $DATA/file
cat > $WORK/lock.py <<'P'
# KIND FILE HOW: takes a lock, says so, and keeps it until its input ends. Exits with 3 if others have it.
import fcntl, struct, sys
kind, file, how = sys.argv[1:]
opened = open(file, "r+b")
flags = (fcntl.LOCK_SH if "shared" in how else fcntl.LOCK_EX) | (0 if "wait" in how else fcntl.LOCK_NB)
try:
    if kind == "flock":
        fcntl.flock(opened, flags)
    else:
        fcntl.lockf(opened, flags, 10, 100)
except BlockingIOError:
    sys.exit(3)
print("locked", flush=True)
sys.stdin.read()
P
# Without the descriptor that keeps the holder: its input has to end.
lock() { python3 $WORK/lock.py "$@" 5>&-; }
# Whether a lock is refused now.
refused() { local code=0; lock "$@" < /dev/null > $WORK/said || code=$?; [ $code = 3 ]; }
free() { lock "$@" < /dev/null > $WORK/said; }

for kind in flock fcntl; do
    for holder in $places; do
        mkfifo $WORK/hold
        lock $kind /mnt/$holder/file try < $WORK/hold > $WORK/held &
        exec 5> $WORK/hold
        eventually 60 grep -q locked $WORK/held
        for other in $places; do
            [ $other = $holder ] || refused $kind /mnt/$other/file try || wrong "$other gets the $kind of $holder"
            [ $other = $holder ] || refused $kind /mnt/$other/file shared || wrong "$other shares the $kind of $holder"
        done
        # One that waits gets it as soon as it is free.
        for other in $places; do
            [ $other != $holder ] || continue
            lock $kind /mnt/$other/file wait < /dev/null > $WORK/waited.$other 5>&- &
            waiters+=($!)
        done
        sleep 2
        for other in $places; do
            [ $other = $holder ] || [ ! -s $WORK/waited.$other ] || wrong "$other did not wait"
        done
        before=$(date +%s%N)
        exec 5>&-
        for waiter in "${waiters[@]}"; do wait "$waiter" || wrong "a waiter of $kind failed"; done
        echo "$kind of $holder: two waiters had it after $((($(date +%s%N) - before) / 1000000)) ms"
        waiters=()
        wait
        rm -f $WORK/hold $WORK/held $WORK/waited.*
    done
done
# A signal ends a wait, and the end of a program its lock.
for place in $places; do
    other=a; [ $place != a ] || other=own
    mkfifo $WORK/hold
    python3 $WORK/lock.py fcntl /mnt/$other/file try < $WORK/hold > $WORK/held &
    holder=$!
    exec 5> $WORK/hold
    eventually 60 grep -q locked $WORK/held
    python3 $WORK/lock.py fcntl /mnt/$place/file wait < /dev/null > $WORK/waited 5>&- &
    waiter=$!
    sleep 2
    [ ! -s $WORK/waited ] || wrong "the waiter of $place did not wait"
    kill -9 $waiter
    eventually 60 bash -c "! kill -0 $waiter"
    kill -9 $holder
    exec 5>&-
    eventually 120 free fcntl /mnt/$place/file try
    wait || true
    rm -f $WORK/hold $WORK/held $WORK/waited
done
# Each increment of the three places counts.
cat > $WORK/count.py <<'P'
import fcntl, os, sys
file, count = sys.argv[1], int(sys.argv[2])
for _ in range(count):
    with open(file, "r+") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        value = int(opened.read() or 0)
        opened.seek(0)
        opened.write(str(value + 1))
        opened.flush()
        os.fsync(opened.fileno())
P
touch $DATA/counter
for place in $places; do python3 $WORK/count.py /mnt/$place/counter 20 & done
wait
same "$(cat /mnt/a/counter)" 60
# SQLite from all three, and git.
sqlite3 /mnt/a/base 'create table t(place text, number int)'
for place in $places; do
    for number in $(seq 10); do echo "insert into t values('$place', $number);"; done > $WORK/$place.sql
    sqlite3 -cmd '.timeout 300000' /mnt/$place/base < $WORK/$place.sql > $WORK/$place.out &
done
wait
same "$(sqlite3 /mnt/b/base 'select count(*) from t; pragma integrity_check')" "$(printf '30\nok')"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$WORK
git init -q /mnt/a/r 2> /dev/null
for place in a b; do
    seq 300 > /mnt/$place/r/$place
    git -C /mnt/$place/r add -A
    git -C /mnt/$place/r -c user.name=t -c user.email=t@t commit -qm $place
done
git -C /mnt/a/r fsck --strict 2>&1 | tee $WORK/fsck
same "$(git -C /mnt/b/r log --oneline | wc -l)" 2
control stat --verbose | tee $WORK/stat
alive
