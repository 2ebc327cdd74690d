# A disk that takes 200 ms for each write (dm-delay): programs on the other disk do not wait for it.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our server"
two_disks slow delay "0 /dev/vdc 0 200"
head -c 30000000 /dev/urandom > $WORK/bytes
dd if=$WORK/bytes of=/mnt/b/alone bs=1M conv=fsync 2>&1 | tail -n 1 | sed 's/^/= alone: /'
cp $WORK/bytes /mnt/a/file &
copy=$!
sleep 1
dd if=$WORK/bytes of=/mnt/b/beside bs=1M conv=fsync 2>&1 | tail -n 1 | sed 's/^/= beside a slow disk: /'
wait $copy
sync -f /mnt/a
cmp $WORK/bytes /srv/slow/file
cmp $WORK/bytes /srv/other/beside
