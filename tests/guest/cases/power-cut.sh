# The server's machine is reset under load, with its client: committed bytes, names and attributes are there afterwards, and
# the file system is whole.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our server"
mkdir -p $DATA
if [ $STAGE = 1 ]; then
    all_mounted
    head -c 3000000 /dev/urandom > /var/lib/guest/bytes
    for number in $(seq 8); do
        cp /var/lib/guest/bytes /mnt/a/file$number
        sync /mnt/a/file$number
        mkdir /mnt/a/folder$number
        chmod 2770 /mnt/a/folder$number
        mv /mnt/a/file$number /mnt/a/folder$number/moved
    done
    ( while :; do dd if=/dev/urandom of=/mnt/a/load bs=64k count=640 status=none; done ) &
    sleep 3
    reset
fi
mount /dev/vdc $DATA
later "umount -l $DATA"
for number in $(seq 8); do
    cmp /var/lib/guest/bytes $DATA/folder$number/moved
    same "$(stat -c %a $DATA/folder$number)" 2770
done
umount $DATA
fsck.ext4 -n -f /dev/vdc > /var/tmp/fsck 2>&1 || { tail -n 5 /var/tmp/fsck; wrong "fsck"; }
