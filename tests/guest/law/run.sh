# Makes a slow disk whose rate is exact in the guest's time, and runs the load. `law=NAME=VALUE,...` of the kernel's command line gives
# `load`, `seconds`, `rate` (0: full speed), `dirty_bytes` (0: the kernel's ratios) and `request_ns`. The loads `copy`
# and `programs` have more (`copy.sh`, `programs.sh`).
#
# The disk is a null_blk that takes one request of 128 KiB at a time, each for `request_ns`, and keeps no bytes. So the file
# system's metadata, packed at its front, lie on a second null_blk in memory without a delay. The load `burst` has another such
# pair, eight times as fast.
eval "$(tr ' ' '\n' < /proc/cmdline | sed -n 's/^law=//p' | tr ',' '\n')"
echo 0 > /proc/sys/kernel/hung_task_timeout_secs
modprobe null_blk nr_devices=0
modprobe dm_mod
# A module in some kernels.
modprobe -q mq-deadline || true
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

# queued NAME: the scheduler and a queue of 64.
queued() {
    queue=/sys/block/$1/queue
    echo mq-deadline > $queue/scheduler
    # By a detour: 6.1's mq-deadline takes its own bound from the number before (dd_depth_updated). From 2 the queue would be short.
    echo 128 > $queue/nr_requests
    echo 64 > $queue/nr_requests
    # The block layer's own throttle of writeback is no part of the law.
    echo 0 > $queue/wbt_lat_usec
}

# mapped NAME BLOCK: the file system's device, with the blocks below BLOCK on the disk in memory.
mapped() {
    [ ! -e "/dev/mapper/$1" ] || dmsetup remove --noudevsync --noudevrules "$1"
    printf '0 %d linear /dev/%s-front 0\n%d %d linear /dev/%s 0\n' $(($2 * 8)) "$1" $(($2 * 8)) $((16777216 - $2 * 8)) "$1" |
        dmsetup create --noudevsync --noudevrules "$1"
    dmsetup mknodes
}

# file_system NAME REQUEST_NS: at /tmp/NAME.
file_system() {
    disk "$1-front" 64 1 0
    disk "$1" 8192 0 "$2"
    queued "$1"
    mapped "$1" 16384
    mke2fs -q -t ext4 -N 256 -J size=16 -E packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0,nodiscard "/dev/mapper/$1"
    # Every block that a file can get is on the slow disk.
    free=$(dumpe2fs "/dev/mapper/$1" 2> /dev/null | sed -n '/^Group 0:/,/^Group 1:/s/^ *Free blocks:.* \([0-9]*\)-[0-9]*$/\1/p')
    mapped "$1" "$free"
    mkdir "/tmp/$1"
    mount -t ext4 -o noatime "/dev/mapper/$1" "/tmp/$1"
}
file_system slow "$request_ns"
[ "$load" != burst ] || file_system faster $((request_ns / 8))
dd if=/dev/zero of=/dev/slow bs=128k count=400 seek=400 oflag=direct 2>&1 | sed -n 's/^/# O_DIRECT: /; $p'
if [ "$dirty_bytes" -gt 0 ]; then
    echo "$dirty_bytes" > /proc/sys/vm/dirty_bytes
    echo $((dirty_bytes / 2)) > /proc/sys/vm/dirty_background_bytes
fi
echo "# kernel: $(uname -r)"
echo "# date: $(date -I)"
hz=$(sed -n 's/^CONFIG_HZ=//p' "/boot/config-$(uname -r)")
echo "# hz: $hz"
export PYTHONHASHSEED=0
case $load in
    copy) . /tmp/copy.sh ;;
    programs) . /tmp/programs.sh ;;
    *) python3 /tmp/load.py "$load" "$seconds" "$rate" "$hz" ;;
esac
