# Lines of /etc/fstab over two orderly restarts: a mount of the server on its own machine, and two of type fuse.afflux, of a
# disk elsewhere and of a directory over itself. The mounts are there after the start; bytes that nobody had synced are there
# after the shutdown; nothing was killed.
# limit: 900
[ $SERVER = afflux ] || skip "this is about our package"
all_there() {
    eventually 120 mountpoint -q /mnt/served
    eventually 120 findmnt -t fuse.afflux /mnt/mounted
    eventually 120 findmnt -t fuse.afflux /srv/itself
}
next() { echo $((STAGE + 1)) > "/var/lib/guest/$CASE.stage"; sync; systemctl reboot; sleep 300; }
if [ $STAGE = 1 ]; then
    mkfs.ext4 -q -F -L served /dev/vdc
    mkfs.ext4 -q -F -L mounted /dev/vdd
    mkdir -p /srv/served /srv/mounted /srv/itself /mnt/served /mnt/mounted
    cp /etc/fstab /var/lib/guest/fstab 2> /dev/null || : > /var/lib/guest/fstab
    cat >> /etc/fstab <<E
LABEL=served  /srv/served  ext4  defaults  0  0
LABEL=mounted  /srv/mounted  ext4  defaults  0  0
127.0.0.1:/  /mnt/served  nfs  vers=3,tcp,nolock,port=2049,mountport=2049,mountproto=tcp,nofail,x-systemd.requires=afflux.service  0  0
/srv/mounted  /mnt/mounted  fuse.afflux  cache=64MiB,_netdev,x-systemd.requires-mounts-for=/srv/mounted  0  0
/srv/itself  /srv/itself  fuse.afflux  cache=64MiB,_netdev  0  0
E
    sed -i -e 's|^#directories = .*|directories = ["/srv/served"]|' -e 's|^#cache = .*|cache = "64MiB"|' /etc/afflux/config.toml
    mkdir -p /var/log/journal
    systemctl enable afflux
    next
fi
findmnt -t nfs,fuse.afflux,ext4 || true
systemctl --failed --no-legend
if [ $STAGE = 2 ]; then
    all_there
    head -c 12000000 /dev/urandom > /var/lib/guest/bytes
    sync /var/lib/guest/bytes
    cp /var/lib/guest/bytes /mnt/served/file
    cp /var/lib/guest/bytes /mnt/mounted/file
    cp /var/lib/guest/bytes /srv/itself/file
    next
fi
all_there
cmp /var/lib/guest/bytes /mnt/served/file
cmp /var/lib/guest/bytes /srv/served/file
cmp /var/lib/guest/bytes /mnt/mounted/file
cmp /var/lib/guest/bytes /srv/mounted/file
cmp /var/lib/guest/bytes /srv/itself/file
journalctl -q -b -1 -o short-monotonic -u afflux -u mnt-served.mount -u mnt-mounted.mount -u srv-itself.mount | tail -n 25
journalctl -q -b -1 -o cat | grep -E -i 'timed out|SIGKILL|left-over|failed|not responding' | sort | uniq -c | head -n 10 > /var/tmp/complaints || true
sed 's/^/= /' /var/tmp/complaints
cp /var/lib/guest/fstab /etc/fstab
systemctl disable --now afflux
umount /mnt/served /mnt/mounted /srv/itself || true
cmp /var/lib/guest/bytes /srv/itself/file
dpkg --purge afflux
! grep -q -i -E 'timed out|SIGKILL' /var/tmp/complaints
