# The server dies with bytes that it had answered and not written. The client sees the changed verifier at its COMMIT, and sends
# them again.
# limit: 2400
[ $SERVER = afflux ] || skip "only our server can be killed"
size=$(blockdev --getsz /dev/vdc)
dmsetup create hanging --table "0 $size linear /dev/vdc 0"
later "dmsetup resume hanging; umount -l $DATA; dmsetup remove --retry hanging"
disk /dev/mapper/hanging $DATA
# A disk of 3 MB/s, as of a busy machine, would otherwise have too small a budget for the bytes.
serve $DATA --set budget_ms=60000
mounted /mnt/a
mkdir -p $WORK
later "rm -rf $WORK"
head -c 8000000 /dev/urandom > $WORK/bytes
head -c 8000000 /dev/zero > /mnt/a/file
sync /mnt/a/file
# The disk takes nothing.
hang hanging 600
sent_uncommitted /mnt/a/file $WORK/bytes
control stat --verbose | grep -m 1 '^hanging' | sed 's/^/= before the kill: /'
kill -9 "$(served_pid)"
resume hanging
eventually 120 bash -c '! systemctl -q is-active served'
systemctl reset-failed served 2> /dev/null || true
lost=$(cmp $WORK/bytes $DATA/file 2>&1 | head -n 1 || true)
[ -n "$lost" ] || wrong "no byte was lost, so this shows nothing"
serve $DATA
timeout 600 sync /mnt/a/file || wrong "the sync"
cmp $WORK/bytes $DATA/file
cmp $WORK/bytes /mnt/a/file
echo "= before the second sending: $lost"
