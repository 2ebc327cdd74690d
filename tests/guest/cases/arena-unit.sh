# systemd keeps the cache and the socket of the packaged service. Its server dies with bytes that it had answered and not written: the
# next one, which systemd starts at once, writes them. The client sends nothing twice, and no connection is refused. Then the server is
# killed under load. A stop empties the store.
# limit: 2400
[ $SERVER = afflux ] || skip "this is about our service"
size=$(blockdev --getsz /dev/vdc)
dmsetup create hanging --table "0 $size linear /dev/vdc 0"
later "dmsetup resume hanging; umount -l $DATA; dmsetup remove --retry hanging"
disk /dev/mapper/hanging $DATA
cp /etc/afflux/config.toml /var/tmp/config
later "cp /var/tmp/config /etc/afflux/config.toml; systemctl stop afflux; systemctl reset-failed afflux"
# A disk of 3 MB/s, as of a busy machine, would otherwise have too small a budget for the bytes.
configured 'budget_ms = 60000'
sed -i 's|^#arena = .*|arena = "systemd"|' /etc/afflux/config.toml
grep -q '^arena = "systemd"' /etc/afflux/config.toml
stored() { systemctl show -P NFileDescriptorStore afflux; }
main_pid() { systemctl show -P MainPID afflux; }
# Another server runs than this one: follows PID
follows() { systemctl -q is-active afflux && [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]; }
systemctl reset-failed afflux 2> /dev/null || true
systemctl start afflux
same "$(stored)" 2 "descriptors in the store"
mounted /mnt/a
mkdir -p $WORK
later "rm -rf $WORK"
( while :; do bash -c "exec 9<> /dev/tcp/127.0.0.1/$PORT" 2> /dev/null || echo refused >> $WORK/refused; sleep 0.1; done ) &
calls=$!
later "kill $calls"
head -c 8000000 /dev/urandom > $WORK/bytes
head -c 8000000 /dev/zero > /mnt/a/file
sync /mnt/a/file
# The disk takes nothing.
hang hanging 600
sent_uncommitted /mnt/a/file $WORK/bytes
writes=$(writes_sent)
before=$(main_pid)
kill -9 "$before"
resume hanging
eventually 60 follows "$before"
timeout 600 sync /mnt/a/file || wrong "the sync"
cmp $WORK/bytes /mnt/a/file
same "$(writes_sent)" "$writes" "WRITEs after the kill"
same "$(stored)" 2 "descriptors in the store"
journalctl -q -u afflux -o cat | grep "an earlier server left" | tail -n 1 | sed 's/^/= /'
kill $WRITER

( cp $WORK/bytes /mnt/a/one; dd if=$WORK/bytes of=/mnt/a/two bs=7777 status=none; tar -C /kit -cf - cases lib.sh | tar -C /mnt/a -xf - ) &
load=$!
kills=0
while kill -0 $load 2> /dev/null && [ $kills -lt 12 ]; do
    sleep $((RANDOM % 4 + 2))
    before=$(main_pid)
    kill -9 "$before"
    eventually 60 follows "$before"
    kills=$((kills + 1))
done
wait $load
sync -f /mnt/a
kill $calls
[ ! -e $WORK/refused ] || wrong "$(wc -l < $WORK/refused) connections were refused"
echo 3 > /proc/sys/vm/drop_caches
for name in one two; do
    cmp $WORK/bytes /mnt/a/$name
    cmp $WORK/bytes $DATA/$name
done
diff -r /kit/cases /mnt/a/cases
echo "= $kills kills under load, starts by systemd: $(systemctl show -P NRestarts afflux)"
umount /mnt/a
systemctl stop afflux
same "$(systemctl show -P Result afflux)" success
same "$(stored)" 0 "descriptors in the store after the stop"
cmp $WORK/bytes $DATA/file

# What a unit without a store says.
fails env -u NOTIFY_SOCKET afflux serve $DATA --arena systemd --listen 127.0.0.1:$PORT > $WORK/out 2>&1
grep -q "not run by systemd" $WORK/out || { cat $WORK/out; wrong "the refusal"; }
