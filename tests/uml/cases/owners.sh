# A client that sends owners by name (nfs4_disable_idmapping=N) has the number of the host's user and group of that name; a name that the host
# does not know is refused.
disk "$WORK/disk"
mkdir -p "$WORK/etc"
# The host's own lists, which the machine does not have.
for list in passwd group; do cp "/etc/$list" "$WORK/etc/$list"; done
echo "many:x:4001:4001::/nowhere:/bin/sh" >> "$WORK/etc/passwd"
echo "staffed:x:5001:" >> "$WORK/etc/group"
machine c1 2
on c1 "mkdir /run/etc
    for list in passwd group; do cp /etc/\$list /run/etc/\$list; done
    echo 'many:x:7001:7001::/nowhere:/bin/sh' >> /run/etc/passwd
    echo 'strange:x:7002:7002::/nowhere:/bin/sh' >> /run/etc/passwd
    echo 'staffed:x:7001:' >> /run/etc/group
    for list in passwd group; do mount --bind /run/etc/\$list /etc/\$list; done
    modprobe nfs
    echo N > /sys/module/nfs/parameters/nfs4_disable_idmapping"
for list in passwd group; do mount --bind "$WORK/etc/$list" "/etc/$list"; done
serve "$WORK/disk"
on c1 "mount -t nfs -o vers=4.2 $HOST:/ /mnt/a
    echo bytes > /mnt/a/file
    chown many:staffed /mnt/a/file"
same "$(stat -c %u:%g "$WORK/disk/file")" 4001:5001
fails on c1 'chown strange /mnt/a/file' > /dev/null 2>&1
same "$(stat -c %u:%g "$WORK/disk/file")" 4001:5001
alive
stop_server
