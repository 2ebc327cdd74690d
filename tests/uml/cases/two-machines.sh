# Two machines on one export: what one has closed the other one reads, a name goes with its file, and each increment under a lock counts.
disk "$WORK/disk"
serve "$WORK/disk"
machine c1 2
machine c2 3
for name in c1 c2; do
    on $name "mount -t nfs $HOST:/ /mnt/a; mount -t nfs -o $V3 $HOST:/ /mnt/b"
    on $name "grep -q ' /mnt/a nfs4 .*vers=4.2' /proc/mounts" || wrong "a mount without a version is not of 4.2"
done
on c1 'head -c 5000000 /dev/urandom > /mnt/a/bytes; sha256sum < /mnt/a/bytes > /run/shared/sum'
for point in a b; do
    same "$(on c2 "sha256sum < /mnt/$point/bytes")" "$(cat "$WORK/sum")" "bytes at /mnt/$point"
done
for round in 1 2 3; do
    on c1 "echo $round > /mnt/a/file"
    same "$(on c2 'cat /mnt/a/file')" $round "close to open"
    on c2 "echo again $round > /mnt/b/file"
    same "$(on c1 'cat /mnt/a/file')" "again $round" "close to open"
done
# A client may believe its own listing for half a minute, so a fresh mount looks for what is gone.
on c1 'mkdir /mnt/a/d; mv /mnt/a/file /mnt/a/d/moved'
same "$(on c2 "mount -t nfs -o nosharecache $HOST:/ /mnt/c; ls /mnt/c; cat /mnt/c/d/moved; rm -r /mnt/c/d /mnt/c/bytes")" "$(printf 'bytes\nd\nagain 3')"
same "$(on c1 "mount -t nfs -o nosharecache $HOST:/ /mnt/c; ls /mnt/c; umount /mnt/c")" ""
# Both count at once.
on c1 'echo 0 > /mnt/a/counter'
for name in c1 c2; do
    begin $name 'python3 /run/rig/lockers.py fcntl /mnt/a/counter /run/shared/held 30 /run/shared/stop /run/shared/rounds.$(hostname)'
    counting+=("$BEGUN")
done
for begun in "${counting[@]}"; do ended "$begun"; done
same "$(cat "$WORK/disk/counter")" 60
alive
stop_server
