# A disk hangs under the server: calls on it wait, the other disk and the attributes go on, and with hang_error_ms writes fail.
# After the disk goes on, each byte is there. A disk that hangs for names alone is named, too.
# limit: 400
[ $SERVER = afflux ] || skip "these are our knobs"
two_disks hanging linear
head -c 8000000 /dev/urandom > $WORK/bytes
head -c 8000000 /dev/zero > /mnt/a/file
sync -f /mnt/a
# An interrupted file system would be flushed first; a hung one is not.
hang hanging 100
dd if=$WORK/bytes of=/mnt/a/file bs=1M conv=notrunc,fsync status=none &
copy=$!
sleep 3
began=$SECONDS
cp $WORK/bytes /mnt/b/file
sync /mnt/b/file
cmp $WORK/bytes /mnt/b/file
echo "= the other disk: $((SECONDS - began)) s"
kill -0 $copy || wrong "a copy to a hung disk ended"
hangs() { afflux stat --verbose --control /run/served.sock | grep -o 'HANGS: .*'; }
eventually 60 hangs
hangs | sed 's/^/= data: /'
resume hanging
wait $copy
sync -f /mnt/a
cmp $WORK/bytes /srv/hanging/file

# Nothing is dirty, and one name waits.
hang hanging 100
touch /mnt/a/new &
touched=$!
eventually 60 hangs
hangs | sed 's/^/= names: /'
control delays > $WORK/delays
head -n 1 $WORK/delays | sed 's/^/= /'
head -n 1 $WORK/delays | grep -q ' is the cause: it hangs'
resume hanging
wait $touched

control set hang_error_ms=10000
hang hanging 100
code=0
timeout 90 dd if=/dev/zero of=/mnt/a/file bs=1M count=4 conv=notrunc,fsync status=none 2> $WORK/error || code=$?
echo "= with hang_error_ms: $(sed 's/.*: //' $WORK/error | head -n 1)"
[ $code = 1 ] || wrong "a write to a hung disk ended with $code"
resume hanging
eventually 60 dd if=$WORK/bytes of=/mnt/a/file bs=1M conv=notrunc,fsync
cmp $WORK/bytes /srv/hanging/file
