#!/bin/sh
# Makes a Debian that QEMU boots, of SUITE, in FOLDER: `kernel`, `initrd`, and `root.img` with systemd and the programs of the cases.
# Usage, as root: root.sh SUITE FOLDER. Debian's cloud kernel is small, and has NFS, device mapper and virtio as modules.
set -eu
suite=$1 folder=$2
root=$folder/root
here=$(dirname "$0")

# Debian 12 has neither a client with TLS nor the daemon that shakes hands for it.
tls=
[ "$suite" = bookworm ] || tls=,ktls-utils

# A power cut may spoil what is made here, so dpkg need not wait for the disk after each file.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io"

debootstrap --variant=minbase --include="systemd-sysv,udev,kmod,iproute2,procps,busybox-static,cpio,ca-certificates,\
nfs-common,nfs-kernel-server,rpcbind,autofs,e2fsprogs,xfsprogs,btrfs-progs,dosfstools,exfatprogs,quota,dmsetup,\
thin-provisioning-tools,fio,git,sqlite3,rsync,strace,python3-minimal,attr,acl,bc,gawk,perl,file,fuse3,libnfs-utils,\
nfs-ganesha,nfs-ganesha-vfs$tls" "$suite" "$root" 1>&2

# The package alone: its dependencies would make an initrd for every machine.
chroot "$root" sh -ec 'cd /tmp; apt-get -qq update
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n "s/.*Depends: \(linux-image-[0-9].*\)/\1/p" | head -n 1)
    apt-get -qq download "$package"; dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x --keep-directory-symlink -C /
    rm linux-image-*.deb; apt-get clean' 1>&2
version=$(ls "$root/lib/modules")
chroot "$root" depmod "$version"
mv "$root/boot/vmlinuz-$version" "$folder/kernel"

# The initrd has what the root's disk needs, and no more.
initrd=$root/tmp/initrd
mkdir -p "$initrd/modules" "$initrd/proc" "$initrd/dev" "$initrd/root" "$initrd/bin"
cp "$root/bin/busybox" "$initrd/bin/busybox"
install -m 755 "$here/initrd-init" "$initrd/init"
for module in virtio_pci virtio_blk ext4; do chroot "$root" modprobe -S "$version" --show-depends "$module"; done |
    awk '$1 == "insmod" && !seen[$2]++ { print $2 }' > "$initrd/modules/order"
number=100
while read -r file; do
    number=$((number + 1))
    case $file in
        *.xz) xz -dc "$root$file" > "$initrd/modules/$number.ko" ;;
        *) cp "$root$file" "$initrd/modules/$number.ko" ;;
    esac
done < "$initrd/modules/order"
chroot "$root" sh -c 'cd /tmp/initrd; find . | cpio -o -H newc 2> /dev/null' > "$folder/initrd"
rm -r "$initrd"

# A quick start: no terminals, nothing periodic, no service that a case does not start.
cp "$here/guest.service" "$root/etc/systemd/system/guest.service"
mkdir -p "$root/kit"
echo guest > "$root/etc/hostname"
echo '127.0.0.1 localhost guest' > "$root/etc/hosts"
chroot "$root" systemctl --quiet enable guest.service
chroot "$root" systemctl --quiet mask getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer \
    dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-timesyncd.service \
    systemd-networkd-wait-online.service systemd-random-seed.service systemd-pstore.service
chroot "$root" systemctl --quiet disable nfs-server.service nfs-ganesha.service autofs.service rpcbind.service rpcbind.socket nfs-client.target fio.service || true
rm -rf "$root/etc/dpkg/dpkg.cfg.d/unsafe-io" "$root/usr/share/doc"/* "$root/usr/share/locale"/* "$root/usr/share/man"/* "$root/var/lib/apt/lists"/* "$root/dev"/*

rm -f "$folder/root.img"
truncate -s 4G "$folder/root.img"
mke2fs -q -t ext4 -E lazy_itable_init=1 -d "$root" "$folder/root.img"
rm -rf "$root"
