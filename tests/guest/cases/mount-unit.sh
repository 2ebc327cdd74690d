# afflux-mount@.service: started, killed and started again, stopped with unwritten bytes, and gone with the package. It has its own filter
# of system calls, and is told of quotas that no option of the disk's mount shows. A plain user's mount works beside it.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our service"
disk /dev/vdd /srv/unit
umount /srv/unit
tune2fs -O quota -Q usrquota /dev/vdd > /dev/null
mount /dev/vdd /srv/unit
mkdir -m 777 /srv/unit/users
setquota -u 4001 0 4096 0 0 /srv/unit
quotaon -u /srv/unit
mkdir -p $WORK
later "rm -rf $WORK"
head -c 9000000 /dev/urandom > $WORK/bytes
systemctl enable --now afflux-mount@srv-unit 2> /dev/null
later "systemctl disable --now afflux-mount@srv-unit; umount -l /srv/unit"
same "$(findmnt -n -o FSTYPE /srv/unit | tail -n 1)" fuse.afflux
echo "= $(systemd-analyze security --no-pager afflux-mount@srv-unit 2> /dev/null | grep -o 'Overall exposure level.*[0-9]')"
[ "$(journalctl -q -u afflux-mount@srv-unit -o cat | grep -c '  note  ')" = 0 ] || wrong "the server lacks something: $(journalctl -q -u afflux-mount@srv-unit -o cat | grep '  note  ')"
cp $WORK/bytes /srv/unit/file
sync /srv/unit/file
cat > $WORK/writer <<'P'
import os
file = os.open("/srv/unit/users/file", os.O_WRONLY | os.O_CREAT)
try:
    for number in range(400):
        os.write(file, b"x" * 24000)
except OSError as error:
    print(error.errno)
P
same "$(setpriv --reuid=4001 --regid=4001 --clear-groups python3 $WORK/writer || true)" 122 "the word about a quota"
# A plain user's mount, beside the unit.
chmod 755 $WORK
mkdir -p $WORK/own/files $WORK/own/point
chown -R daemon:daemon $WORK/own
as_user() { setpriv --reuid=daemon --regid=daemon --clear-groups env HOME=$WORK/own XDG_RUNTIME_DIR=$WORK/own "$@"; }
as_user afflux mount $WORK/own/files $WORK/own/point --cache 16MiB --config /dev/null &
user_mount=$!
later "kill $user_mount; umount -l $WORK/own/point"
# Root may not look into it.
eventually 60 grep -q " $WORK/own/point fuse" /proc/self/mounts
as_user sh -c "echo plain > $WORK/own/point/file"
as_user afflux umount $WORK/own/point
same "$(cat $WORK/own/files/file)" plain
systemctl kill -s KILL afflux-mount@srv-unit
# The dead mount is taken away before the next one comes: in between, the disk's own folder is there.
restarted() {
    [ "$(systemctl show -P NRestarts afflux-mount@srv-unit)" -gt 0 ] && systemctl -q is-active afflux-mount@srv-unit
}
eventually 100 restarted
cmp $WORK/bytes /srv/unit/file
same "$(findmnt -n -o FSTYPE /srv/unit | grep -c fuse)" 1 "mounts after a restart"
cp $WORK/bytes /srv/unit/late
systemctl stop afflux-mount@srv-unit
same "$(systemctl show -P Result afflux-mount@srv-unit)" success
same "$(findmnt -n -o FSTYPE /srv/unit)" ext4
cmp $WORK/bytes /srv/unit/late
systemctl start afflux-mount@srv-unit
cp $WORK/bytes /srv/unit/last
dpkg --purge afflux > $WORK/out 2>&1 || { cat $WORK/out; wrong "the purge"; }
same "$(findmnt -n -o FSTYPE /srv/unit)" ext4 "after the purge"
cmp $WORK/bytes /srv/unit/last
fails pgrep -x afflux
same "$(find /etc/systemd/system /run/systemd/system -name '*afflux*')" "" "links after the purge"
