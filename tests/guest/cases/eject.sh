# `afflux eject` has a server on the disk write everything, and names it. It unmounts no disk that a server or a program uses,
# and names the user. It releases a free disk; after that the disk is unplugged, and a file system on it is whole.
# limit: 600
[ $SERVER = afflux ] || skip "this is our command"
disk /dev/vdd /srv/stick
mkdir -p $WORK
head -c 6000000 /dev/urandom > $WORK/bytes
serve /srv/stick
DATA=/srv/stick mounted /mnt/a
cp $WORK/bytes /mnt/a/file
server=$(served_pid)
code=0
afflux eject vdd > $WORK/out 2>&1 || code=$?
same $code 1
sed 's/^/= served: /' $WORK/out | tail -n 4
grep -q "afflux (process $server)" $WORK/out
cmp $WORK/bytes /srv/stick/file
code=0
afflux eject vdd --unmount > $WORK/out 2>&1 || code=$?
sed 's/^/= served, with --unmount: /' $WORK/out | tail -n 4
same $code 1
grep -q "$server" $WORK/out
mountpoint -q /srv/stick
umount /mnt/a
systemctl stop served
sleep 9000 < /srv/stick/file &
holder=$!
code=0
afflux eject vdd --unmount > $WORK/out 2>&1 || code=$?
same $code 1
grep -q "$holder" $WORK/out || { cat $WORK/out; wrong "the holder is not named"; }
kill $holder
wait $holder || true
afflux eject vdd --unmount > $WORK/out 2>&1 || { cat $WORK/out; wrong "a free disk is not ejected"; }
tail -n 1 $WORK/out | sed 's/^/= free: /'
fails mountpoint -q /srv/stick
host monitor device_del disk-vdd > /dev/null
eventually 60 bash -c '! [ -e /sys/block/vdd ]'
# QEMU lets the name of a device go after the guest does.
plugged_in() ( host monitor device_add virtio-blk-pci,drive=vdd,id=disk-vdd,serial=vdd )
eventually 60 plugged_in
eventually 60 bash -c 'lsblk -ndo SERIAL,NAME | grep -q "^vdd "'
again=/dev/$(lsblk -ndo SERIAL,NAME | awk '$1 == "vdd" { print $2 }')
fsck.ext4 -n -f "$again" > $WORK/out 2>&1 || { cat $WORK/out; wrong "fsck"; }
mount "$again" /srv/stick
cmp $WORK/bytes /srv/stick/file
