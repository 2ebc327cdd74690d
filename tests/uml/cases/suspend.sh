# A machine sleeps beyond its lease while it has a lock. Another one gets the lock then, and not before; what the sleeper writes under its lost
# lock when it wakes is refused, and its mount goes on.
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
machine c2 3
echo nobody > "$WORK/disk/file"
for name in c1 c2; do on $name "mount -t nfs $HOST:/ /mnt/a"; done
cat > "$WORK/hold.py" <<'P'
# FILE WORD TOLD GO: takes the lock, makes a file TOLD, waits for a file GO, and writes the word.
import fcntl, os, sys, time
file, word, told, go = sys.argv[1:]
opened = os.open(file, os.O_RDWR)
fcntl.lockf(opened, fcntl.LOCK_EX)
open(told, "w").close()
while not os.path.exists(go):
    time.sleep(0.05)
os.pwrite(opened, word.encode() + b"\n", 0)
os.fsync(opened)
os.close(opened)
P
holds() { echo "python3 /run/shared/hold.py /mnt/a/file $1 /run/shared/$1.has /run/shared/$1.go"; }
begin c1 "$(holds first)"
first=$BEGUN
eventually 60 test -e "$WORK/first.has"
begin c2 "$(holds second)"
second=$BEGUN
# Whoever only tries is refused, too: the waiter cannot have it.
fails on c2 "python3 -c 'import fcntl; fcntl.lockf(open(\"/mnt/a/file\", \"r+\"), fcntl.LOCK_EX | fcntl.LOCK_NB)' 2> /dev/null"
[ ! -e "$WORK/second.has" ] || wrong "two machines have the lock"
suspend c1
eventually 300 test -e "$WORK/second.has"
touch "$WORK/second.go"
ended "$second"
touch "$WORK/first.go"
resume c1
fails ended "$first" > "$WORK/said"
grep -q 'OSError' "$WORK/said" || wrong "$(cat "$WORK/said")"
same "$(on c2 'cat /mnt/a/file')" second
on c1 'echo awake > /mnt/a/new; sync /mnt/a/new; python3 -c "import fcntl; fcntl.lockf(open(\"/mnt/a/file\", \"r+\"), fcntl.LOCK_EX | fcntl.LOCK_NB)"'
same "$(on c2 'cat /mnt/a/new /mnt/a/file')" "$(printf 'awake\nsecond')"
alive
stop_server
