# Serves a file system over NFS 4.2 to Linux's own client in the same guest, and runs programs on the mount: `server` is knfsd, afflux,
# afflux-async, ganesha, or none for the file system itself. Prints the microseconds of each act, and the calls that the client sent for
# it. run.sh reads this file.
#
# The disk keeps its bytes in memory. It takes one request of at most 128 KiB at a time, each for `request_ns`. knfsd (`sync`) and afflux
# answer a change of names when it is durable; afflux-async and ganesha, which has no such mode, answer before.
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
/bin/busybox ip link set lo up
disk kept 700 1 "$request_ns"
queued kept
mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/kept
mkdir /tmp/kept /tmp/mount
mount -t ext4 -o noatime /dev/kept /tmp/kept
rm -r /tmp/kept/lost+found
mkdir -p /run/rpcbind /run/ganesha /var/lib/nfs/v4recovery /var/lib/nfs/ganesha /tmp/state
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
case $server in
    none) mount --bind /tmp/kept /tmp/mount ;;
    knfsd)
        modprobe nfsd
        mount -t nfsd nfsd /proc/fs/nfsd
        rpcbind -w
        exportfs -i -o rw,sync,no_root_squash,no_subtree_check,insecure,fsid=0 127.0.0.1:/tmp/kept
        rpc.mountd
        # Without a list of earlier clients the server waits for them.
        echo 10 > /proc/fs/nfsd/nfsv4leasetime
        echo 10 > /proc/fs/nfsd/nfsv4gracetime
        rpc.nfsd --no-nfs-version 3 8 ;;
    afflux*)
        promise=
        [ $server = afflux ] || promise=--async-metadata
        modprobe -q -a inet_diag tcp_diag || true
        HOME=/tmp/state XDG_RUNTIME_DIR=/tmp/state /tmp/afflux serve /tmp/kept --listen 127.0.0.1:2049 --any-port --cache 64MiB \
            --rpcbind off --squash none $promise --state /tmp/state --control /tmp/state/control > /tmp/server.log 2>&1 & ;;
    ganesha)
        rpcbind -w
        cat > /run/ganesha.conf << 'CONF'
NFS_CORE_PARAM { Protocols = 4; }
NFSV4 { Grace_Period = 10; Lease_Lifetime = 10; }
EXPORT { Export_Id = 1; Path = /tmp/kept; Pseudo = /; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
CONF
        ganesha.nfsd -f /run/ganesha.conf -L /tmp/server.log -p /run/ganesha.pid ;;
esac
failed() {
    cat /tmp/server.log 2> /dev/null
    dmesg | tail -n 20
    exit 1
}
mounted() { [ "$server" = none ] || mount -t nfs -o vers=4.2,hard,noresvport 127.0.0.1:/ /tmp/mount; }
if [ "$server" != none ]; then
    modprobe nfsv4
    tries=100
    until mounted 2> /dev/null; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || failed
        sleep 0.2
    done
    # The server gives nothing new in its time for earlier clients.
    touch /tmp/mount/first || failed
    rm /tmp/mount/first
fi

# A tree as sources are: 40 folders, 400 files of 200 bytes to 60 KiB.
python3 - << 'PROGRAM'
import os, random
dice = random.Random(1)
for folder in range(40):
    path = f"/tmp/source/tree/d{folder % 8}/e{folder}"
    os.makedirs(path)
    for name in range(10):
        with open(f"{path}/f{name}", "wb") as file:
            file.write(dice.randbytes(int(200 * 300 ** dice.random())))
PROGRAM
tar -C /tmp/source -cf /tmp/tree.tar tree

calls() { sed -n 's/^rpc \([0-9]*\).*/\1/p' /proc/net/rpc/nfs 2> /dev/null || echo 0; }
# Runs an act and prints its time and calls: act NAME COMMAND...
act() {
    name=$1
    shift
    calls_before=$(calls)
    begin=$(date +%s%N)
    "$@" > /dev/null || failed
    end=$(date +%s%N)
    echo "# ${name}_us: $(((end - begin) / 1000)), $(($(calls) - calls_before)) calls"
}
export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
# acts FOLDER: the mount, or a folder where they go first. A read of the Debian's disk takes no time of the guest's that means anything, so all
# programs are in memory before an act is timed.
acts() {
    act untar tar -C $1 -xf /tmp/tree.tar
    act git_init git -C $1/tree init -q
    act git_add git -C $1/tree add .
    act git_commit git -C $1/tree commit -qm one
    act git_status git -C $1/tree status
    act rsync rsync -a /tmp/source/tree/ $1/copy
    act write_32_mib dd if=/dev/zero of=$1/big bs=1M count=32 conv=fsync status=none
    act small_syncs dd if=/dev/zero of=$1/synced bs=4k count=200 oflag=dsync status=none
    # The client forgets what it has.
    if [ $1 = /tmp/mount ] && [ "$server" != none ]; then
        umount /tmp/mount
        mounted
    fi
    act read_32_mib dd if=$1/big of=/dev/null bs=1M status=none
    act find find $1 -newer $1/big
    act rm rm -r $1/tree $1/copy
}
mkdir /tmp/first
acts /tmp/first > /dev/null
rm -r /tmp/first
acts /tmp/mount
# What the machine costs: 100,000 system calls of a program.
act system_calls dd if=/dev/zero of=/dev/null bs=1 count=50000 status=none
