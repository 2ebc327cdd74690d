# The disk is pulled out under load. The server lives, reports the loss, serves its other disk; bytes that were committed are on
# the disk when it is plugged in again.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our server"
disk /dev/vdd /srv/pulled -o errors=remount-ro
disk /dev/vdc /srv/other
serve /srv/pulled /srv/other
EXPORT=/pulled mounted /mnt/a
EXPORT=/other mounted /mnt/b
mkdir -p $WORK
head -c 8000000 /dev/urandom > $WORK/bytes
dd if=$WORK/bytes of=/mnt/a/committed bs=1M conv=fsync status=none
( while :; do dd if=/dev/zero of=/mnt/a/load bs=1M count=16 conv=fsync status=none || break; done ) 2> $WORK/error &
load=$!
sleep 3
host monitor device_del disk-vdd > /dev/null
eventually 60 bash -c '! [ -e /sys/block/vdd ]'
eventually 60 bash -c "! kill -0 $load"
echo "= the load ends with: $(sed 's/.*: //' $WORK/error | head -n 1)"
timeout 60 dd if=$WORK/bytes of=/mnt/b/file bs=1M conv=fsync status=none || wrong "the other disk"
cmp $WORK/bytes /mnt/b/file
alive
control stat --verbose > $WORK/stat || wrong "no stat"
grep -o '[0-9]* files* could not be written.*' $WORK/stat > $WORK/told || wrong "stat does not tell"
sed 's/^/= stat: /' $WORK/told
umount -f -l /mnt/a
began=$SECONDS
systemctl stop served
echo "= the stop takes $((SECONDS - began)) s: $(journalctl -q -u served -n 3 -o cat | tr '\n' ' ')"
umount -l /srv/pulled
host monitor device_add virtio-blk-pci,drive=vdd,id=disk-vdd,serial=vdd > /dev/null
eventually 60 bash -c 'lsblk -ndo SERIAL,NAME | grep -q "^vdd "'
again=/dev/$(lsblk -ndo SERIAL,NAME | awk '$1 == "vdd" { print $2 }')
mount "$again" /srv/pulled
later "umount -l /srv/pulled"
cmp $WORK/bytes /srv/pulled/committed
