# The packaged unit of a mount, with a server for NFS clients and `--arena systemd`: systemd keeps the memories, the socket and /dev/fuse.
# A program writes and syncs through the mount while the server is killed again and again, also by an open file and an open directory
# without a name. It sees no error, and each byte is right. The write verifier stays: an NFS client sends no WRITE again. A stop empties
# the store.
# limit: 2400
[ $SERVER = afflux ] || skip "this is about our service"
[ "$(printf '6.9\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.9 ] || skip "a mount outlives its server from Linux 6.9 on"
unit=afflux-mount@srv-unit
disk /dev/vdd /srv/unit
mkdir -p $WORK /etc/systemd/system/$unit.service.d
later "rm -rf $WORK"
cat > /etc/systemd/system/$unit.service.d/kept.conf <<U
[Service]
ExecStartPre=
ExecStart=
ExecStart=/usr/bin/afflux serve %f --mount %f --config /dev/null --arena systemd --cache 64MiB --listen 127.0.0.1:$PORT
FileDescriptorStoreMax=80
RestartSec=0
PrivateNetwork=no
IPAddressDeny=
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK
U
later "rm -r /etc/systemd/system/$unit.service.d; systemctl daemon-reload"
systemctl daemon-reload
cat > $WORK/program <<'P'
import os, sys
point, work = sys.argv[1:]
def block(number):
    return b"%08d" % number * 512
def told(rounds):
    with open(work + "/new", "w") as new:
        new.write(str(rounds))
    os.rename(work + "/new", work + "/rounds")
file = os.open(point + "/file", os.O_RDWR | os.O_CREAT)
unnamed = os.open(point + "/unnamed", os.O_RDWR | os.O_CREAT)
os.unlink(point + "/unnamed")
os.mkdir(point + "/gone")
gone = os.open(point + "/gone", os.O_RDONLY)
os.rmdir(point + "/gone")
rounds = 0
while not os.path.exists(work + "/end"):
    for to in file, unnamed:
        assert os.pwrite(to, block(rounds), rounds * 4096) == 4096
        os.fsync(to)
        assert os.pread(to, 4096, rounds * 4096) == block(rounds), rounds
    os.rename(point + "/file", point + "/moved")
    os.rename(point + "/moved", point + "/file")
    os.fchmod(gone, 0o700 + rounds % 8)
    assert os.fstat(gone).st_mode & 0o777 == 0o700 + rounds % 8
    rounds += 1
    told(rounds)
for to in file, unnamed:
    assert all(os.pread(to, 4096, number * 4096) == block(number) for number in range(rounds))
assert os.fstat(unnamed).st_nlink == os.fstat(gone).st_nlink == 0
open(work + "/wanted", "wb").write(b"".join(map(block, range(rounds))))
P
stored() { systemctl show -P NFileDescriptorStore $unit; }
main_pid() { systemctl show -P MainPID $unit; }
# Another server runs than this one: follows PID
follows() { systemctl -q is-active $unit && [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]; }
rounds() { cat $WORK/rounds 2> /dev/null || echo 0; }
has_stored() { [ "$(stored)" = "$1" ]; }
# The program has made so many rounds, or has ended: goes_on ROUNDS
goes_on() { [ "$(rounds)" -ge "$1" ] || ! kill -0 $program; }

same "$(systemctl show -P StartLimitBurst $unit) $(systemctl show -P StartLimitIntervalUSec $unit)" "20 1min" "starts that systemd allows"
systemctl start $unit
later "systemctl stop $unit; systemctl reset-failed $unit; umount -l /srv/unit"
same "$(findmnt -n -o FSTYPE /srv/unit | tail -n 1)" fuse.afflux
same "$(stored)" 4 "descriptors in the store"
mounted /mnt/a
head -c 1000000 /dev/urandom > $WORK/bytes
: > /mnt/a/nfs
sent_uncommitted /mnt/a/nfs $WORK/bytes
writes=$(writes_sent)
[ "$writes" -gt 0 ] || wrong "the client sent nothing"
python3 $WORK/program /srv/unit $WORK &
program=$!
later "touch $WORK/end; kill -9 $program"
eventually 60 goes_on 2
same "$(stored)" 6 "descriptors in the store with a file and a directory without a name"
for kill in 1 2 3; do
    before=$(main_pid) wanted=$(($(rounds) + 2))
    kill -9 "$before"
    eventually 100 follows "$before"
    eventually 100 goes_on $wanted
    kill -0 $program || wrong "the program after kill $kill"
done
# As fast as systemd starts servers. A quicker machine would pass the limit that systemd has by itself: five starts in ten seconds.
for kill in 4 5 6 7 8 9 10; do
    before=$(main_pid)
    kill -9 "$before"
    eventually 100 follows "$before"
done
eventually 100 goes_on $(($(rounds) + 2))
touch $WORK/end
wait $program || wrong "the program"
timeout 600 sync /mnt/a/nfs || wrong "the sync"
same "$(writes_sent)" "$writes" "WRITEs after the kills"
kill $WRITER
eventually 20 has_stored 4
echo "= $(rounds) rounds over 10 kills, starts by systemd: $(systemctl show -P NRestarts $unit)"
cmp $WORK/wanted /srv/unit/file
umount /mnt/a
systemctl stop $unit
same "$(systemctl show -P Result $unit)" success
same "$(stored)" 0 "descriptors in the store after the stop"
same "$(findmnt -n -o FSTYPE /srv/unit)" ext4
cmp $WORK/wanted /srv/unit/file
cmp $WORK/bytes /srv/unit/nfs
