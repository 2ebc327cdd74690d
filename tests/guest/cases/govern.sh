# `afflux govern` as the service, on a disk that cgroup v2's io.max holds to a rate: the limit follows the rate, and the old
# values come back at the stop.
# limit: 400
[ $SERVER = afflux ] || skip "this is about our service"
[ -e /sys/class/bdi ] || skip "no /sys/class/bdi"
disk /dev/vdc $DATA
number=$(lsblk -ndo MAJ:MIN /dev/vdc | tr -d ' ')
bdi=/sys/class/bdi/$number
[ -e $bdi/strict_limit ] || skip "this kernel has no limit for each disk (Linux 6.2 has)"
before=$(cat $bdi/max_ratio_fine $bdi/strict_limit | xargs)
systemctl start afflux-govern
later "systemctl stop afflux-govern"
echo +io > /sys/fs/cgroup/cgroup.subtree_control 2> /dev/null || true
mkdir -p /sys/fs/cgroup/held
echo "$number wbps=5000000" > /sys/fs/cgroup/held/io.max
later "rmdir /sys/fs/cgroup/held"
( echo $BASHPID > /sys/fs/cgroup/held/cgroup.procs; for i in 1 2 3 4 5 6; do dd if=/dev/zero of=$DATA/load bs=1M count=60 conv=notrunc status=none; done ) &
load=$!
sleep 45
afflux govern --status | tee /var/tmp/status
grep vdc /var/tmp/status | sed 's/^/= /'
same_values=$(cat $bdi/max_ratio_fine $bdi/strict_limit | xargs)
echo "= values before: $before, governed: $same_values"
kill $load 2> /dev/null || true
wait $load || true
systemctl stop afflux-govern
same "$(cat $bdi/max_ratio_fine $bdi/strict_limit | xargs)" "$before" "after the stop"
