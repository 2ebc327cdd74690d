# Linux's client clones files by version 4.2: whole ones with `cp --reflink`, and ranges. Two file systems of the host share the blocks; a third one
# cannot, and says so.
for kind in xfs btrfs ext4; do
    disk "$WORK/$kind" $kind
    serve "$WORK/$kind"
    [ $kind != xfs ] || machine c1 2
    on c1 "mount -t nfs -o vers=4.2 $HOST:/ /mnt/a
        head -c 20000777 /dev/urandom > /mnt/a/source
        cp /mnt/a/source /run/shared/first"
    if [ $kind = ext4 ]; then
        fails on c1 'cp --reflink=always /mnt/a/source /mnt/a/target' 2> /dev/null
        on c1 'cp --reflink=auto /mnt/a/source /mnt/a/target'
    else
        # Bytes that the server has, and bytes that only the client has.
        on c1 'printf dirty | dd of=/mnt/a/source bs=1 seek=7 conv=notrunc status=none
            printf dirty | dd of=/run/shared/first bs=1 seek=7 conv=notrunc status=none
            cp --reflink=always /mnt/a/source /mnt/a/target'
        # A CLONE is durable without a COMMIT, and the server may be killed.
        killed
        filefrag -v "$WORK/$kind/target" | grep -q shared || wrong "$kind shares no block"
    fi
    on c1 'printf later | dd of=/mnt/a/source bs=1 seek=9000 conv=notrunc status=none
        cmp /mnt/a/target /run/shared/first
        umount /mnt/a'
    cmp "$WORK/$kind/target" "$WORK/first" || wrong "$kind: the clone has other bytes on the host"
    if [ $kind != ext4 ]; then
        # FICLONERANGE: 64 KiB from 8 KiB to 40 KiB.
        on c1 "mount -t nfs -o vers=4.2 $HOST:/ /mnt/a
            python3 -c 'import fcntl, struct
with open(\"/mnt/a/source\", \"rb\") as source, open(\"/mnt/a/target\", \"r+b\") as target:
    fcntl.ioctl(target, 0x4020940d, struct.pack(\"qQQQ\", source.fileno(), 8192, 65536, 40960))'
            umount /mnt/a"
        cmp --bytes=65536 --ignore-initial=8192:40960 "$WORK/$kind/source" "$WORK/$kind/target" || wrong "$kind: the range has other bytes"
    fi
    alive
    stop_server
    rm -rf "$WORK/state"
done
