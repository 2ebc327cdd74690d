# What people type on the first day: showmount, a mount without a word more, mounts by the host's own path, and autofs. The server has
# the usual port, and an address that other machines reach.
# limit: 900
[ $SERVER = afflux ] || skip "it is about our server's names"
PORT=2049
LISTEN=192.0.2.15
ip address add $LISTEN/32 dev lo
later "ip address del $LISTEN/32 dev lo"
disk /dev/vdc $DATA
mkdir -p $WORK $DATA/below /mnt/a /mnt/b
later "rm -rf $WORK"
echo first > $DATA/file
echo third > $DATA/below/file
systemctl start rpcbind
later "systemctl stop rpcbind rpcbind.socket"

# One directory: its root, its path on this host, and a directory below.
serve $DATA --allow 192.0.2.0/24
later "umount -f -l /mnt/b; umount -f -l /mnt/a"
eventually 60 bash -c "rpcinfo -p $LISTEN | grep -q '100003  *3  *tcp  *2049'"
same "$(showmount -e --no-headers $LISTEN | awk '{print $1}')" /
mount -t nfs $LISTEN:/ /mnt/a
grep -q ' /mnt/a nfs4 .*vers=4.2' /proc/mounts || wrong "$(grep /mnt/a /proc/mounts)"
same "$(cat /mnt/a/file)" first
for path in $DATA $DATA/below /below; do
    mount -t nfs $LISTEN:$path /mnt/b
    grep -q ' /mnt/b nfs4 .*vers=4.2' /proc/mounts || wrong "$path: $(grep /mnt/b /proc/mounts)"
    same "$(cat /mnt/b/file)" "$(cat $DATA/${path#$DATA}/file)" "$path"
    # The way to the path is no directory of the mount, and its name is free, a moment after the mount.
    sleep 3
    same "$(ls /mnt/b | grep -x srv || true)" ""
    [ ! -e /mnt/b/srv ] || wrong "the mount of $path has a directory srv"
    umount /mnt/b
done
umount /mnt/a

# autofs: the exports of a host, and a map of one's own. Without `nobind` autofs binds the paths of its own host.
printf '/net -hosts nobind\n/mnt/auto %s/map\n' $WORK > /etc/auto.master
echo "here -fstype=nfs,nobind $LISTEN:$DATA/below" > $WORK/map
later "systemctl stop autofs"
systemctl start autofs
same "$(cat /net/$LISTEN/file)" first
same "$(cat /mnt/auto/here/file)" third
grep -q ' /mnt/auto/here nfs4 .*vers=4.2' /proc/mounts || wrong "$(grep /mnt/auto /proc/mounts)"
systemctl stop autofs
alive
