# Writes fail for a while (dm-flakey), and then for ever (dm-error): committed bytes are there, lost bytes are reported to the
# program that wrote them, and the server lives: failing-disk:serve, failing-disk:mount
# limit: 600
[ $SERVER = afflux ] || skip "this is about our server"
size=$(blockdev --getsz /dev/vdc)
dmsetup create failing --table "0 $size linear /dev/vdc 0"
later "umount -l /mnt/a; umount -l $DATA; dmsetup remove --retry failing"
load() { dmsetup suspend --noflush --nolockfs failing; dmsetup load failing --table "$1"; dmsetup resume failing; }
disk /dev/mapper/failing $DATA -o errors=continue
case ${ARG:-serve} in
    serve) serve $DATA; mounted /mnt/a ;;
    mount) mount_own $DATA /mnt/a ;;
esac
mkdir -p $WORK
head -c 4000000 /dev/urandom > $WORK/bytes
cp $WORK/bytes /mnt/a/committed
sync /mnt/a/committed
dd if=$WORK/bytes of=/mnt/a/file bs=1M conv=fsync status=none

# Reads go on, writes fail.
load "0 $size flakey /dev/vdc 0 0 3600 1 error_writes"
code=0
dd if=/dev/zero of=/mnt/a/file bs=4096 count=64 conv=notrunc,fsync status=none 2> $WORK/error || code=$?
[ $code != 0 ] || wrong "an fsync succeeded on a disk that fails writes"
echo "= fsync while writes fail: $(sed 's/.*: //' $WORK/error | head -n 1)"
cmp $WORK/bytes /mnt/a/committed
load "0 $size linear /dev/vdc 0"
# A journal that failed a write is aborted: ext4 takes no change until it is mounted again.
if dd if=/dev/zero of=/mnt/a/file bs=4096 count=64 conv=notrunc,fsync status=none 2> $WORK/error; then
    cmp -n 262144 /dev/zero $DATA/file
    echo "= afterwards: written"
else
    echo "= afterwards: $(sed 's/.*: //' $WORK/error | head -n 1)"
fi
cmp $WORK/bytes /mnt/a/committed

# The disk is gone for good.
load "0 $size error"
code=0
dd if=$WORK/bytes of=/mnt/a/new bs=1M conv=fsync status=none 2> $WORK/error || code=$?
[ $code != 0 ] || wrong "an fsync succeeded on a disk that is gone"
echo "= fsync on a dead disk: $(sed 's/.*: //' $WORK/error | head -n 1)"
alive
load "0 $size linear /dev/vdc 0"
# Our own mount ends with the umount, and names the bytes that it could not write.
umount -f -l /mnt/a 2> $WORK/error || sed 's/^/= umount: /' $WORK/error
ended
umount $DATA
mount /dev/mapper/failing $DATA
cmp $WORK/bytes $DATA/committed
fsck.ext4 -n -f /dev/mapper/failing > /dev/null 2>&1 || true
