# What people type on the first day: showmount, a mount without a word more, a mount of a directory below, the host's own path, and autofs. The server has
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

# One directory: its root, a directory below, and its path on this host, which means nothing until the export has such a directory.
serve $DATA --allow 192.0.2.0/24
later "umount -f -l /mnt/b; umount -f -l /mnt/a"
eventually 60 bash -c "rpcinfo -p $LISTEN | grep -q '100003  *3  *tcp  *2049'"
same "$(showmount -e --no-headers $LISTEN | awk '{print $1}')" /
mount -t nfs $LISTEN:/ /mnt/a
grep -q ' /mnt/a nfs4 .*vers=4.2' /proc/mounts || wrong "$(grep /mnt/a /proc/mounts)"
same "$(cat /mnt/a/file)" first
first=${DATA#/}
first=${first%%/*}
[ ! -e /mnt/a/$first ] || wrong "the mount has a directory $first"
mount -t nfs $LISTEN:/below /mnt/b
grep -q ' /mnt/b nfs4 .*vers=4.2' /proc/mounts || wrong "$(grep /mnt/b /proc/mounts)"
same "$(cat /mnt/b/file)" third
umount /mnt/b
for options in vers=4.2 vers=3,tcp,nolock,mountproto=tcp; do
    fails mount -t nfs -o retry=0,$options,port=$PORT,mountport=$PORT $LISTEN:$DATA /mnt/b
    mkdir -p $DATA/$DATA
    mount -t nfs -o $options,port=$PORT,mountport=$PORT $LISTEN:$DATA /mnt/b
    touch /mnt/b/$options
    ls $DATA/$DATA/$options
    umount /mnt/b
    rm -r $DATA/$first
done
umount /mnt/a

# autofs: the exports of a host, and a map of one's own. Without `nobind` autofs binds the paths of its own host.
printf '/net -hosts nobind\n/mnt/auto %s/map\n' $WORK > /etc/auto.master
echo "here -fstype=nfs,nobind $LISTEN:/below" > $WORK/map
later "systemctl stop autofs"
systemctl start autofs
same "$(cat /net/$LISTEN/file)" first
same "$(cat /mnt/auto/here/file)" third
grep -q ' /mnt/auto/here nfs4 .*vers=4.2' /proc/mounts || wrong "$(grep /mnt/auto /proc/mounts)"
systemctl stop autofs
alive
