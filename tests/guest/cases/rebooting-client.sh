# The client's machine is reset under load: the server on the host goes on, what the client had committed is there, and the
# client mounts again and writes at once.
# limit: 600
host server start > /dev/null
mount_host() {
    mkdir -p /mnt/a
    port=$(host server port)
    mount -t nfs -o "$OPTIONS,port=$port,mountport=$port,mountproto=tcp" 10.0.2.2:/ /mnt/a
}
mount_host
if [ $STAGE = 1 ]; then
    head -c 3000000 /dev/urandom > /var/lib/guest/bytes
    cp /var/lib/guest/bytes /mnt/a/committed
    sync /mnt/a/committed
    ( while :; do dd if=/dev/urandom of=/mnt/a/load bs=64k count=64 status=none; done ) &
    sleep 2
    reset
fi
cmp /var/lib/guest/bytes /mnt/a/committed
cp /var/lib/guest/bytes /mnt/a/load
sync /mnt/a/load
echo 3 > /proc/sys/vm/drop_caches
cmp /var/lib/guest/bytes /mnt/a/load
umount /mnt/a
host server stop > /dev/null
