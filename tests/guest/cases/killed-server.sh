# The server is killed under load, again and again: programs on the mount go on, and each byte is right, there and on the disk:
# killed-server:BYTES of each of two copies, or killed-server
# limit: 900
[ $SERVER = afflux ] || skip "only our server can be killed"
all_mounted
head -c ${ARG:-40000000} /dev/urandom > $WORK/bytes
( cp $WORK/bytes /mnt/a/one; dd if=$WORK/bytes of=/mnt/a/two bs=7777 status=none; tar -C /kit -cf - cases lib.sh | tar -C /mnt/a -xf - ) &
load=$!
kills=0
while kill -0 $load 2> /dev/null && [ $kills -lt 12 ]; do
    sleep $((RANDOM % 4 + 1))
    killed
    kills=$((kills + 1))
    sleep 0.$((RANDOM % 9))
    serve $DATA
done
wait $load
sync -f /mnt/a
killed
serve $DATA
echo 3 > /proc/sys/vm/drop_caches
for name in one two; do
    cmp $WORK/bytes /mnt/a/$name
    cmp $WORK/bytes $DATA/$name
done
diff -r /kit/cases /mnt/a/cases
echo "= $kills kills"
