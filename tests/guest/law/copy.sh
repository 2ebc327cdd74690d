# Serves the slow file system over NFS, and copies a file to it: `server` is knfsd or afflux. `max_bytes` (0: none) is the limit of the disk's
# own dirty pages, strict, which Linux has since 6.2. run.sh reads this file. The link has 100 Mbit/s unless `rate` says otherwise.
[ "$rate" -gt 0 ] || rate=11800000
mkdir /tmp/slow/data
number=$(cat /sys/block/dm-0/dev)
if [ "$max_bytes" -gt 0 ]; then
    echo 1 > "/sys/class/bdi/$number/strict_limit"
    echo "$max_bytes" > "/sys/class/bdi/$number/max_bytes"
fi
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
/bin/busybox ip link set lo up
case $server in
    knfsd)
        mkdir -p /run/rpcbind /var/lib/nfs/v4recovery
        touch /var/lib/nfs/etab /var/lib/nfs/rmtab
        modprobe nfsd
        mount -t nfsd nfsd /proc/fs/nfsd
        rpcbind -w
        exportfs -i -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=7 127.0.0.1:/tmp/slow/data
        rpc.mountd --port 20048 -N 4
        rpc.nfsd --no-nfs-version 4 8
        ports="2049 20048 /tmp/slow/data" ;;
    afflux)
        mkdir /tmp/state
        # Our server asks the kernel for the owner of a connection.
        modprobe -q -a inet_diag tcp_diag || true
        HOME=/tmp/state XDG_RUNTIME_DIR=/tmp/state /tmp/afflux serve /tmp/slow/data --listen 127.0.0.1:3049 --any-port \
            --squash none --state /tmp/state --control /tmp/state/control > /tmp/afflux.log 2>&1 &
        ports="3049 3049 /" ;;
esac
python3 /tmp/copy.py $ports "$rate" || { cat /tmp/afflux.log 2> /dev/null; dmesg | tail -n 20; false; }
