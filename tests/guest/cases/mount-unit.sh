# afflux-mount@.service: started, killed and started again, stopped with unwritten bytes, and gone with the package.
# limit: 600
[ $SERVER = afflux ] || skip "this is about our service"
disk /dev/vdd /srv/unit
mkdir -p $WORK
later "rm -rf $WORK"
head -c 9000000 /dev/urandom > $WORK/bytes
systemctl enable --now afflux-mount@srv-unit 2> /dev/null
later "systemctl disable --now afflux-mount@srv-unit; umount -l /srv/unit"
same "$(findmnt -n -o FSTYPE /srv/unit | tail -n 1)" fuse.afflux
echo "= $(systemd-analyze security --no-pager afflux-mount@srv-unit 2> /dev/null | grep -o 'Overall exposure level.*[0-9]')"
cp $WORK/bytes /srv/unit/file
sync /srv/unit/file
systemctl kill -s KILL afflux-mount@srv-unit
# Names and attributes of the dead mount are still in the kernel; bytes are not.
eventually 60 cmp $WORK/bytes /srv/unit/file
[ "$(systemctl show -P NRestarts afflux-mount@srv-unit)" -gt 0 ] || wrong "nobody started it again"
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
