# The server keeps its cache in a file that outlives it. It dies with bytes that it had answered and not written: the next one
# writes them, and the client sends nothing twice. Then it is killed under load, again and again.
# limit: 2400
[ $SERVER = afflux ] || skip "only our server has an arena"
size=$(blockdev --getsz /dev/vdc)
dmsetup create hanging --table "0 $size linear /dev/vdc 0"
later "dmsetup resume hanging; umount -l $DATA; dmsetup remove --retry hanging"
disk /dev/mapper/hanging $DATA
# A disk of 3 MB/s, as of a busy machine, would otherwise have too small a budget for the bytes.
arena() { serve $DATA --arena /dev/shm/arena --set budget_ms=60000; }
later "rm -f /dev/shm/arena"
arena
mounted /mnt/a
mkdir -p $WORK
later "rm -rf $WORK"
head -c 8000000 /dev/urandom > $WORK/bytes
head -c 8000000 /dev/zero > /mnt/a/file
sync /mnt/a/file
# The disk takes nothing.
hang hanging 600
sent_uncommitted /mnt/a/file $WORK/bytes
writes=$(writes_sent)
kill -9 "$(served_pid)"
resume hanging
eventually 120 bash -c '! systemctl -q is-active served'
systemctl reset-failed served 2> /dev/null || true
lost=$(cmp $WORK/bytes $DATA/file 2>&1 | head -n 1 || true)
[ -n "$lost" ] || wrong "no byte was missing, so this shows nothing"
arena
timeout 600 sync /mnt/a/file || wrong "the sync"
cmp $WORK/bytes $DATA/file
same "$(writes_sent)" "$writes" "WRITEs after the kill"
echo "= missing at the kill: $lost; WRITEs before and after: $writes, $(writes_sent)"
kill $WRITER

( cp $WORK/bytes /mnt/a/one; dd if=$WORK/bytes of=/mnt/a/two bs=7777 status=none; tar -C /kit -cf - cases lib.sh | tar -C /mnt/a -xf - ) &
load=$!
kills=0
while kill -0 $load 2> /dev/null && [ $kills -lt 12 ]; do
    sleep $((RANDOM % 4 + 1))
    killed
    kills=$((kills + 1))
    arena
done
wait $load
sync -f /mnt/a
killed
arena
echo 3 > /proc/sys/vm/drop_caches
for name in one two; do
    cmp $WORK/bytes /mnt/a/$name
    cmp $WORK/bytes $DATA/$name
done
diff -r /kit/cases /mnt/a/cases
echo "= $kills kills"
systemctl stop served
eventually 120 bash -c '! systemctl -q is-active served'
[ ! -e /dev/shm/arena ] || wrong "a stop in order leaves the file"
