# A user of a machine has the groups that the host lists, of which a call names 16 (--groups server), and none that the machine gives it.
disk "$WORK/disk"
mkdir -p "$WORK/etc"
# The case's own lists: a user in forty groups.
for list in passwd group; do cp "/etc/$list" "$WORK/etc/$list"; done
echo "many:x:4001:4001::/nowhere:/bin/sh" >> "$WORK/etc/passwd"
for at in $(seq 40); do echo "many$at:x:$((5000 + at)):many" >> "$WORK/etc/group"; done
for list in passwd group; do mount --bind "$WORK/etc/$list" "/etc/$list"; done
for group in 5040 6000; do
    echo "of $group" > "$WORK/disk/$group"
    chown "4002:$group" "$WORK/disk/$group"
    chmod 640 "$WORK/disk/$group"
done
machine c1 2
for version in vers=4.2 "$V3"; do
    serve "$WORK/disk" --groups server
    on c1 "mount -t nfs -o $version $HOST:/ /mnt/a"
    same "$(on c1 'setpriv --reuid 4001 --regid 4001 --clear-groups cat /mnt/a/5040')" 'of 5040'
    fails on c1 'setpriv --reuid 4001 --regid 4001 --groups 6000 cat /mnt/a/6000' > /dev/null 2>&1
    on c1 'umount /mnt/a'
    stop_server
    # The machine's list counts by default.
    serve "$WORK/disk"
    on c1 "mount -t nfs -o $version $HOST:/ /mnt/a"
    same "$(on c1 'setpriv --reuid 4001 --regid 4001 --groups 6000 cat /mnt/a/6000')" 'of 6000'
    fails on c1 'setpriv --reuid 4001 --regid 4001 --clear-groups cat /mnt/a/5040' > /dev/null 2>&1
    on c1 'umount /mnt/a'
    stop_server
done
