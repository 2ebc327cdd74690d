# The server dies with bytes that it had answered and not written. The client sees the changed verifier at its COMMIT, and sends
# them again.
# limit: 300
[ $SERVER = afflux ] || skip "only our server can be killed"
size=$(blockdev --getsz /dev/vdc)
dmsetup create hanging --table "0 $size linear /dev/vdc 0"
later "dmsetup resume hanging; umount -l $DATA; dmsetup remove --retry hanging"
disk /dev/mapper/hanging $DATA
serve $DATA
mounted /mnt/a
mkdir -p $WORK
later "rm -rf $WORK"
head -c 8000000 /dev/urandom > $WORK/bytes
head -c 8000000 /dev/zero > /mnt/a/file
sync /mnt/a/file
# Sent, and not committed: the disk takes nothing, and the file stays open, since the client commits at a close.
hang hanging 60
python3 - $WORK/bytes $WORK/sent <<'P' &
import ctypes, os, sys, time
descriptor = os.open("/mnt/a/file", os.O_WRONLY)
os.write(descriptor, open(sys.argv[1], "rb").read())
ctypes.CDLL(None).sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), 7)
open(sys.argv[2], "w").close()
time.sleep(1000)
P
later "kill $!"
eventually 50 test -e $WORK/sent
control stat --verbose | grep -m 1 '^hanging' | sed 's/^/= before the kill: /'
kill -9 "$(served_pid)"
resume hanging
eventually 30 bash -c '! systemctl -q is-active served'
systemctl reset-failed served 2> /dev/null || true
lost=$(cmp $WORK/bytes $DATA/file 2>&1 | head -n 1 || true)
[ -n "$lost" ] || wrong "no byte was lost, so this shows nothing"
serve $DATA
timeout 120 sync /mnt/a/file || wrong "the sync"
cmp $WORK/bytes $DATA/file
cmp $WORK/bytes /mnt/a/file
echo "= before the second sending: $lost"
