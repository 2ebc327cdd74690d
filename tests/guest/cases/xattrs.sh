# Version 4.2 as Linux's own client uses it: extended attributes behind their switch, holes, a copy on the server, and a stream of
# READs or, from Linux 6.12 on, of READ_PLUSs.
# limit: 900
[ $SERVER = afflux ] || skip "the switch is ours"
OPTIONS=hard
disk /dev/vdc $DATA
serve $DATA
mounted /mnt/a
mkdir -p $WORK
later "rm -rf $WORK"
calls() { awk -v name="$1:" '$1 == name { calls += $2 } END { print calls + 0 }' /proc/self/mountstats; }

touch /mnt/a/file
fails setfattr -n user.a -v one /mnt/a/file 2> $WORK/said
grep -q 'not supported' $WORK/said || wrong "$(cat $WORK/said)"
ls -l /mnt/a > /dev/null
same "$(calls LISTXATTRS)" 0 "without the switch nobody asks"
umount /mnt/a
control set nfs_xattrs=1
mounted /mnt/a
setfattr -n user.a -v one /mnt/a/file
setfattr -n user.b -v two /mnt/a/file
same "$(getfattr --only-values -n user.a $DATA/file)" one "the host has it"
same "$(getfattr -d --absolute-names /mnt/a/file | grep -c '^user')" 2
setfattr -x user.a /mnt/a/file
fails getfattr -n user.a $DATA/file 2> /dev/null
rsync -aX /mnt/a/file $WORK/copy
same "$(getfattr --only-values -n user.b $WORK/copy)" two
umount /mnt/a
control set nfs_xattrs=0
mounted /mnt/a

# The client has no copy of what it reads after a new mount.
head -c 64M /dev/urandom > $DATA/stream
sum=$(sha256sum < $DATA/stream)
for version in 3 4.1 4.2; do
    umount /mnt/a
    lock=; [ $version != 3 ] || lock=,tcp,nolock
    OPTIONS=hard,vers=$version$lock mounted /mnt/a
    before=$(($(calls READ) + $(calls READ_PLUS)))
    began=$(date +%s%N)
    same "$(sha256sum < /mnt/a/stream)" "$sum"
    took=$((($(date +%s%N) - began) / 1000000))
    echo "= 64 MiB by version $version: $took ms, $(($(calls READ) + $(calls READ_PLUS) - before)) calls, $(calls READ_PLUS) of them READ_PLUS"
done
fallocate -l 8M /mnt/a/sparse
fallocate -p -o 1M -l 4M /mnt/a/sparse
printf data | dd of=/mnt/a/sparse bs=1 seek=6M conv=notrunc status=none
same "$(stat -c %s $DATA/sparse)" $((8 << 20))
cp --reflink=never --sparse=never /mnt/a/sparse /mnt/a/other
cmp /mnt/a/sparse /mnt/a/other
sync -f /mnt/a
cmp $DATA/sparse $DATA/other
alive
