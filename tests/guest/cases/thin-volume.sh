# A thin volume that is full: writes that find no space are reported, committed bytes stay, and after more space the server
# goes on.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our server"
dd if=/dev/zero of=/dev/vdd bs=1M count=8 status=none conv=fsync
meta=8192 data=131072
dmsetup create thin-meta --table "0 $meta linear /dev/vdd 0"
later "dmsetup remove --retry thin-meta"
dmsetup create thin-data --table "0 $data linear /dev/vdd $meta"
later "dmsetup remove --retry thin-data"
dmsetup create thin-pool --table "0 $data thin-pool /dev/mapper/thin-meta /dev/mapper/thin-data 128 0 1 error_if_no_space"
later "dmsetup remove --retry thin-pool"
dmsetup message thin-pool 0 "create_thin 0"
dmsetup create thin --table "0 1048576 thin /dev/mapper/thin-pool 0"
later "dmsetup remove --retry thin"
disk /dev/mapper/thin $DATA -o errors=continue,discard
serve $DATA
mounted /mnt/a
mkdir -p $WORK
head -c 16000000 /dev/urandom > $WORK/bytes
dd if=$WORK/bytes of=/mnt/a/committed bs=1M conv=fsync status=none
code=0
dd if=/dev/urandom of=/mnt/a/large bs=1M count=100 conv=fsync status=none 2> $WORK/error || code=$?
[ $code != 0 ] || wrong "100 MiB went to a volume of 64 MiB"
echo "= the program is told: $(sed 's/.*: //' $WORK/error | head -n 1)"
dmsetup status thin-pool | sed 's/^/= /'
alive
cmp $WORK/bytes /mnt/a/committed
rm /mnt/a/large
# The file system gives blocks back once its journal has the removal.
sync -f $DATA
dmsetup suspend thin-pool
dmsetup load thin-pool --table "0 $data thin-pool /dev/mapper/thin-meta /dev/mapper/thin-data 128 0 1 error_if_no_space"
dmsetup resume thin-pool
dmsetup status thin-pool | sed 's/^/= after the large file went: /'
eventually 60 dd if=$WORK/bytes of=/mnt/a/after bs=1M conv=fsync
cmp $WORK/bytes $DATA/after
cmp $WORK/bytes $DATA/committed
