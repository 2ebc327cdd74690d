# The service is stopped while its disk hangs: it is killed after TimeoutStopSec, not before and not never; while data is being
# written to a slow disk the stop goes on beyond that.
# limit: 400
[ $SERVER = afflux ] || skip "this is about our service"
size=$(blockdev --getsz /dev/vdc)
table() { case $1 in slow) echo "0 $size delay /dev/vdc 0 0 /dev/vdc 0 $2" ;; *) echo "0 $size linear /dev/vdc 0" ;; esac; }
dmsetup create changing --table "$(table plain)"
later "dmsetup resume changing; umount -l $DATA; dmsetup remove --retry changing"
disk /dev/mapper/changing $DATA
cp /etc/afflux/config.toml /var/tmp/config
later "cp /var/tmp/config /etc/afflux/config.toml; systemctl stop afflux; rm -rf /run/systemd/system/afflux.service.d; systemctl daemon-reload"
configured 'budget_ms = 60000' 'dirty_expire_centisecs = 100000' 'dirty_writeback_centisecs = 100000'
mkdir -p /run/systemd/system/afflux.service.d $WORK
printf '[Service]\nTimeoutStopSec=8s\n' > /run/systemd/system/afflux.service.d/short.conf
systemctl daemon-reload
# The manager's own words about the stop are wanted.
systemd-analyze log-target journal
later "systemd-analyze log-target null"
systemctl start afflux
mounted /mnt/a "soft,timeo=50,retrans=1"
head -c 8000000 /dev/urandom > $WORK/bytes

cp $WORK/bytes /mnt/a/committed
sync /mnt/a/committed
hang changing 100
( timeout 30 dd if=/dev/zero of=/mnt/a/lost bs=1M count=8 status=none || true ) &
sleep 4
began=$SECONDS
systemctl stop afflux || true
took=$((SECONDS - began))
echo "= hung disk, TimeoutStopSec=8s: stopped after $took s, result $(systemctl show -P Result afflux)"
journalctl -q -u afflux -o short-monotonic _PID=1 | sed -n "s/^\[ *\([0-9]*\).*afflux.service: \(.*\(timed out\|SIGKILL\|still\|Failed\).*\)/= at \1 s: \2/p" | head -n 12
[ $took -ge 7 ] && [ $took -lt 60 ] || wrong "the stop took $took s"
resume changing
wait
umount -f -l /mnt/a
cmp $WORK/bytes $DATA/committed
systemctl reset-failed afflux || true

# A slow disk: it writes all the time, so the stop may take longer than TimeoutStopSec. A new name would wait for the disk.
systemctl start afflux
mounted /mnt/a
for number in $(seq 0 23); do : > /mnt/a/slow$number; done
dmsetup suspend changing; dmsetup load changing --table "$(table slow 2500)"; dmsetup resume changing
# The client commits at a close, so the files stay open. SYNC_FILE_RANGE_WRITE and SYNC_FILE_RANGE_WAIT_AFTER in one call would
# make each WRITE a stable one.
python3 - $WORK/sent <<'P' &
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
files = [os.open(f"/mnt/a/slow{number}", os.O_RDWR) for number in range(24)]
for number, file in enumerate(files):
    os.write(file, bytes([number + 1]) * 70000)
for flag in 2, 4:
    for file in files:
        libc.sync_file_range(file, ctypes.c_int64(0), ctypes.c_int64(0), flag)
open(sys.argv[1], "w").close()
time.sleep(1000)
P
later "kill $!"
eventually 60 test -e $WORK/sent
began=$SECONDS
systemctl stop afflux
took=$((SECONDS - began))
echo "= slow disk: stopped after $took s, result $(systemctl show -P Result afflux)"
same "$(systemctl show -P Result afflux)" success
for number in $(seq 0 23); do
    same "$(tr -d "\\$(printf %03o $((number + 1)))" < $DATA/slow$number | wc -c) $(stat -c %s $DATA/slow$number)" "0 70000" "file $number"
done
