set -e
suite=$1 place=$2 built=$3 packaging=$4; shift 4
cd "$place"
# As on a host with systemd: a server's own view then follows others' unmounting.
mount --make-rshared /
mkdir upper work test scratch on-test on-scratch results home state
sbin=$(realpath /sbin)
mount -t overlay -o "lowerdir=$sbin,upperdir=$place/upper,workdir=$place/work" overlay "$sbin"
cp "$packaging/umount.fuse.afflux" "$sbin"
sed "s|logger -t afflux-mount|cat >> $place/server.log|" "$packaging/mount.fuse.afflux" > "$sbin/mount.fuse.afflux"
chmod 755 "$sbin/mount.fuse.afflux" "$sbin/umount.fuse.afflux"
# mount(8) gives its helpers a path of its own.
ln -s "$built/afflux" "$sbin/afflux"
for kind in passwd group; do cp "/etc/$kind" "$place"; done
number=61000
for user in fsgqa fsgqa2 123456-fsgqa; do
    grep -q "^$user:" passwd || echo "$user:*:$number:$number::$place/home:/bin/bash" >> passwd
    grep -q "^$user:" group || echo "$user:*:$number:" >> group
    number=$((number + 1))
done
for kind in passwd group; do mount --bind "$place/$kind" "/etc/$kind"; done
# The suite does not know our kind of mount by its whole name, and unmounts devices, which are directories here.
sed -e "s|-e 's/fuse.ceph-fuse/ceph-fuse/'|& -e 's/fuse.afflux/fuse/'|" \
    -e 's/_unmount $SCRATCH_DEV/_unmount $SCRATCH_MNT/; s/_unmount $TEST_DEV/_unmount $TEST_DIR/' \
    "$suite/common/rc" > rc
mount --bind rc "$suite/common/rc"
cat > local.config <<END
export FSTYP=fuse
export FUSE_SUBTYP=.afflux
export TEST_DEV=$place/test TEST_DIR=$place/on-test
export SCRATCH_DEV=$place/scratch SCRATCH_MNT=$place/on-scratch
export TEST_FS_MOUNT_OPTS="-o cache=128MiB" MOUNT_OPTIONS="-o cache=128MiB"
export RESULT_BASE=$place/results
END
export HOST_OPTIONS="$place/local.config" XDG_STATE_HOME="$place/state"
cd "$suite"
./check -fuse "$@" || true
umount "$place/on-test" "$place/on-scratch" 2> /dev/null || true
