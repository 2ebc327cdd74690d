# A program with the library on a disk whose writes fail for a while (dm-flakey), and then for ever (dm-error). Each line that the program
# calls durable is on the disk, each failure is answered, and its end names the bytes that it could not write.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our library"
size=$(blockdev --getsz /dev/vdc)
dmsetup create failing --table "0 $size linear /dev/vdc 0"
later "umount -l $DATA; dmsetup remove --retry failing"
load() { dmsetup suspend --noflush --nolockfs failing; dmsetup load failing --table "$1"; dmsetup resume failing; }
disk /dev/mapper/failing $DATA -o errors=continue
mkdir -p $WORK
later "rm -rf $WORK"
coproc /kit/bin/append_lines $DATA/lines
program=$COPROC_PID
exec 7>&"${COPROC[1]}" 8<&"${COPROC[0]}"
# The program's answer to a line: says LINE
says() {
    echo "$1" >&7
    read -r -t 60 answer <&8 || wrong "no answer to $1"
    [ "$answer" != durable ] || durable=$1
}
says one
same "$answer" durable
load "0 $size flakey /dev/vdc 0 0 3600 1 error_writes"
says two
[ "$answer" != durable ] || wrong "a sync succeeded on a disk that fails writes"
echo "= while writes fail: $answer"
load "0 $size linear /dev/vdc 0"
# A journal that failed a write is aborted: ext4 takes no change until it is mounted again.
says three
echo "= afterwards: $answer"
load "0 $size error"
says four
[ "$answer" != durable ] || wrong "a sync succeeded on a disk that is gone"
echo "= on a dead disk: $answer"
exec 7>&- {COPROC[1]}>&-
said=$(cat <&8)
code=0
wait $program || code=$?
same $code 1 "the end of a program that could not write all lines"
echo "$said" | sed 's/^/= at its end: /'
load "0 $size linear /dev/vdc 0"
umount $DATA
mount /dev/mapper/failing $DATA
grep -qx one $DATA/lines
printf '%s\n' one two three four | sed "/^$durable\$/q" > $WORK/durable
same "$(head -n "$(wc -l < $WORK/durable)" $DATA/lines)" "$(cat $WORK/durable)" "the durable lines"
