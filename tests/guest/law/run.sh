# Makes a slow disk whose rate is exact in the guest's time, and runs the load. `law=NAME=VALUE,...` of the kernel's command line gives
# `seconds`, `dirty_bytes` (0: the kernel's ratios) and `request_ns`.
#
# The disk is a null_blk that takes one request of 128 KiB at a time, each for `request_ns`, and keeps no bytes. So the file
# system's metadata, packed at its front, lie on a second null_blk in memory without a delay.
eval "$(tr ' ' '\n' < /proc/cmdline | sed -n 's/^law=//p' | tr ',' '\n')"
echo 0 > /proc/sys/kernel/hung_task_timeout_secs
modprobe null_blk nr_devices=0
modprobe dm_mod
mount -t configfs config /sys/kernel/config

# disk NAME MIB KEEPS_BYTES REQUEST_NS
disk() {
    disk=/sys/kernel/config/nullb/$1
    mkdir "$disk"
    echo "$2" > "$disk/size"
    echo "$3" > "$disk/memory_backed"
    echo 4096 > "$disk/blocksize"
    echo 256 > "$disk/max_sectors"
    echo 2 > "$disk/queue_mode"
    if [ "$4" -gt 0 ]; then
        echo 2 > "$disk/irqmode"
        echo "$4" > "$disk/completion_nsec"
        echo 1 > "$disk/hw_queue_depth"
    fi
    echo 1 > "$disk/power"
}
disk fast 64 1 0
disk slow 8192 0 "$request_ns"
queue=/sys/block/slow/queue
echo mq-deadline > $queue/scheduler
echo 64 > $queue/nr_requests
# The block layer's own throttle of writeback is no part of the law.
echo 0 > $queue/wbt_lat_usec
dd if=/dev/zero of=/dev/slow bs=128k count=400 oflag=direct 2>&1 | sed -n 's/^/# O_DIRECT: /; $p'

# mapped BLOCK: the file system's device, with the blocks below BLOCK on the fast disk.
mapped() {
    [ ! -e /dev/mapper/law ] || dmsetup remove --noudevsync --noudevrules law
    printf '0 %d linear /dev/fast 0\n%d %d linear /dev/slow 0\n' $(($1 * 8)) $(($1 * 8)) $((16777216 - $1 * 8)) |
        dmsetup create --noudevsync --noudevrules law
    dmsetup mknodes
}
mapped 16384
mke2fs -q -t ext4 -N 256 -J size=16 -E packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/mapper/law
# Every block that a file can get is on the slow disk.
mapped "$(dumpe2fs /dev/mapper/law 2> /dev/null | sed -n '/^Group 0:/,/^Group 1:/s/^ *Free blocks:.* \([0-9]*\)-[0-9]*$/\1/p')"
mkdir /tmp/mnt
mount -t ext4 -o noatime /dev/mapper/law /tmp/mnt
if [ "$dirty_bytes" -gt 0 ]; then
    echo "$dirty_bytes" > /proc/sys/vm/dirty_bytes
    echo $((dirty_bytes / 2)) > /proc/sys/vm/dirty_background_bytes
fi
echo "# kernel: $(uname -r)"
echo "# date: $(date -I)"
echo "# hz: $(sed -n 's/^CONFIG_HZ=//p' "/boot/config-$(uname -r)")"
PYTHONHASHSEED=0 python3 /tmp/load.py "$seconds"
