# A file that is removed while it is open keeps its bytes until its close, and leaves no name and no space behind.
# limit: 600
all_mounted nosharecache
mounted /mnt/b nosharecache
head -c 2000000 /dev/urandom > $WORK/bytes
cp $WORK/bytes /mnt/a/file
exec 7< /mnt/a/file
rm /mnt/a/file
fails test -e /mnt/a/file
same "$(ls -A /mnt/a | grep -c nfs)" 1
cmp $WORK/bytes - <&7
exec 7<&-
eventually 10 bash -c '! ls -A /mnt/a | grep nfs'
# Removed by the other client: the open file is stale, or still there; never others' bytes.
cp $WORK/bytes /mnt/a/file
sync /mnt/a/file
exec 7< /mnt/a/file
rm /mnt/b/file
head -c 2000000 /dev/zero > /mnt/b/file
echo 3 > /proc/sys/vm/drop_caches
if cat <&7 > $WORK/got 2> $WORK/error; then
    cmp $WORK/bytes $WORK/got
    echo "= a file that another client removed: still there"
else
    grep -q Stale $WORK/error
    echo "= a file that another client removed: $(sed 's/.*: //' $WORK/error)"
fi
exec 7<&-
# Open over a rename onto it.
cp $WORK/bytes /mnt/a/target
exec 7< /mnt/a/target
echo new > /mnt/a/source
mv /mnt/a/source /mnt/a/target
cmp $WORK/bytes - <&7
exec 7<&-
same "$(cat /mnt/a/target)" new
rm /mnt/a/target /mnt/b/file
eventually 15 bash -c "[ \$(df --output=used $DATA | tail -n 1) -lt 1000 ]"
