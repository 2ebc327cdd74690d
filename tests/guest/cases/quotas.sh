# Limits of a user, a group and a project: quotas:ext4, quotas:xfs, and quotas:ext3, where nothing can be reserved. Through our mount and
# through NFS a program is told of its limit by a write or by its close. Each byte that a write took before is on the disk, in new
# files, in holes, from two writers at once, and on XFS in blocks that two files share. Bytes with blocks are written over at the limit. The
# same holds for limits that come while the server runs.
# limit: 1800
[ $SERVER = afflux ] || skip "this is about our server"
kind=${ARG:-ext4}
mkdir -p $WORK $DATA
later "rm -rf $WORK"
later "umount -l $DATA"
# An empty disk with this option of the mount: fresh OPTIONS
fresh() {
    umount $DATA 2> /dev/null || true
    case $kind in
        ext4) mkfs.ext4 -q -F -O quota,project -E quotatype=usrquota:grpquota:prjquota /dev/vdc ;;
        ext3) mkfs.ext3 -q -F -O quota /dev/vdc ;;
        xfs) mkfs.xfs -q -f /dev/vdc ;;
    esac
    mount -o "$1" /dev/vdc $DATA
    mkdir -m 777 $DATA/users $DATA/project
}
case $kind in
    ext4) enforced=usrquota,grpquota,prjquota counted=defaults ;;
    ext3) enforced=usrquota,grpquota counted=defaults ;;
    xfs) enforced=uquota,gquota,pquota counted=uqnoenforce,gqnoenforce,pqnoenforce ;;
esac
# 4 MiB for user 4001, for group 4002 and for project 77.
limit() {
    setquota -u 4001 0 4096 0 0 $DATA
    setquota -g 4002 0 4096 0 0 $DATA
    case $kind in
        ext4) chattr -p 77 +P $DATA/project && setquota -P 77 0 4096 0 0 $DATA ;;
        xfs) xfs_quota -x -c "project -s -p $DATA/project 77" -c 'limit -p bhard=4m 77' $DATA > /dev/null ;;
    esac
}
cat > $WORK/writer <<'P'
# As a user of a group, writes to a file at these places until one write fails: writer USER GROUP FILE first STEP COUNT
# Prints the bytes that were taken, and the errors of the opening, the writes and the close.
import os, sys
user, group, name, first, step, count = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])
os.setgroups([])
os.setgid(group)
os.setuid(user)
os.umask(0)
file, taken, told = None, 0, []
try:
    file = os.open(name, os.O_WRONLY | os.O_CREAT)
    for number in range(count):
        taken += os.pwrite(file, (b"%011d\n" % number) * 2000, first + number * step)
except OSError as error:
    told.append(error.errno)
try:
    if file is not None:
        os.close(file)
except OSError as error:
    told.append(error.errno)
print(taken, *told)
P
cat > $WORK/reader <<'P'
# Prints how many bytes of such a file are as they were written: reader FILE FIRST STEP COUNT
import sys
name, first, step, count = sys.argv[1], *map(int, sys.argv[2:])
with open(name, "rb") as file:
    right = 0
    for number in range(count):
        file.seek(first + number * step)
        right += sum(a == b for a, b in zip(file.read(24000), (b"%011d\n" % number) * 2000))
print(right)
P
case $kind in
    ext3) parts="4001:77:users/one 4010:4002:users/two" ;;
    *) parts="4001:77:users/one 4010:4002:users/two 4020:4020:project/three" ;;
esac
# The errors of a limit: EDQUOT, and ENOSPC for a project of XFS.
is_limit() { [ "$1" = 122 ] || { [ $kind = xfs ] && [ "$1" = 28 ]; }; }
# A load was told of the limit, and what was taken is there: judged NAME 'TAKEN ERROR...' RIGHT
judged() {
    local taken errors
    read -r taken errors <<< "$2"
    echo "= $front $1: taken $taken, told ${errors:-nothing}, on the disk $3"
    is_limit "${errors%% *}" || wrong "$1: no word of the limit"
    # Where only the writing tells, the error of a close is the word about bytes that were taken.
    [ $kind = ext3 ] || [ $front = nfs ] || [ "$taken" = "$3" ] || wrong "$1: $taken bytes were taken, $3 are there"
}
began() { case $front in mount) mount_own $DATA /mnt/a ;; nfs) serve $DATA; mounted /mnt/a ;; esac; }
over() {
    umount /mnt/a || true
    systemctl stop served 2> /dev/null || true
    if systemctl -q is-failed served && [ $kind != ext3 ]; then
        journalctl -q -u served -n 20 -o cat
        wrong "the server could not write everything"
    fi
    systemctl reset-failed served 2> /dev/null || true
}
for front in mount nfs; do
    # New files, one after the other.
    fresh $enforced
    limit
    began
    for part in $parts; do
        IFS=: read -r user group name <<< "$part"
        python3 $WORK/writer "$user" "$group" /mnt/a/$name 0 24000 400 > $WORK/said-${name#*/}
        # Each further byte is refused, too.
        python3 $WORK/writer "$user" "$group" /mnt/a/$name-again 0 24000 2 > $WORK/again
        read -r _ error <<< "$(cat $WORK/again)"
        is_limit "${error%% *}" || wrong "$name: $(cat $WORK/said-${name#*/}), a second file: $(cat $WORK/again)"
    done
    over
    for part in $parts; do
        name=${part##*:}
        judged "$name" "$(cat $WORK/said-${name#*/})" "$(python3 $WORK/reader $DATA/$name 0 24000 400)"
    done

    # Holes of a file, and two writers of one limit at once.
    fresh $enforced
    limit
    began
    python3 $WORK/writer 4001 4001 /mnt/a/users/holes 7 1000000 400 > $WORK/holes
    for writer in 1 2; do
        python3 $WORK/writer $((4001 + 10 * writer)) 4002 /mnt/a/users/writer$writer 0 24000 400 > $WORK/writer$writer &
    done
    wait
    over
    judged holes "$(cat $WORK/holes)" "$(python3 $WORK/reader $DATA/users/holes 7 1000000 400)"
    for writer in 1 2; do
        judged "writer $writer of 2" "$(cat $WORK/writer$writer)" "$(python3 $WORK/reader $DATA/users/writer$writer 0 24000 400)"
    done

    # A limit that comes while the server runs.
    fresh $counted
    began
    python3 $WORK/writer 4001 4001 /mnt/a/users/before 0 24000 4 > $WORK/before
    same "$(cat $WORK/before)" 96000
    limit
    case $kind in
        ext4 | ext3) quotaon -u $DATA ;;
        xfs) xfs_quota -x -c 'enable -u' $DATA ;;
    esac
    sleep 2
    python3 $WORK/writer 4001 4001 /mnt/a/users/before 96000 24000 4 > $WORK/before
    sleep 2
    python3 $WORK/writer 4001 4001 /mnt/a/users/later 0 24000 400 > $WORK/later
    over
    judged later "$(cat $WORK/later)" "$(python3 $WORK/reader $DATA/users/later 0 24000 400)"
done
# A user at a limit writes over bytes that have blocks.
front=mount
fresh $enforced
limit
python3 $WORK/writer 4001 4001 $DATA/users/full 0 24000 400 > $WORK/full
read -r taken _ < $WORK/full
count=$((taken / 24000))
began
same "$(python3 $WORK/writer 4001 4001 /mnt/a/users/full 0 24000 $count)" $((count * 24000)) "bytes written over at the limit"
over

[ $kind = xfs ] || exit 0

# Blocks that two files share: a write to them needs new ones. The user's files reach the limit already.
front=mount
fresh $enforced
limit
python3 $WORK/writer 4001 4001 $DATA/users/one 0 24000 80 > /dev/null
cp --reflink=always --preserve=ownership $DATA/users/one $DATA/users/two
sync -f $DATA
setquota -u 4001 0 "$(setpriv --reuid=4001 --regid=4001 --clear-groups quota -u -w -p --show-mntpoint --hide-device 2> /dev/null | awk -v at=$DATA '$1 == at { print $2 }' | tr -d '*')" 0 0 $DATA
began
python3 $WORK/writer 4001 4001 /mnt/a/users/two 12000 24000 79 > $WORK/shared
over
read -r taken errors < $WORK/shared
right=$(python3 $WORK/reader $DATA/users/two 12000 24000 79)
echo "= shared blocks: taken $taken, told ${errors:-nothing}, on the disk $right"
[ -n "$errors" ] || [ "$taken" = "$right" ] || wrong "$taken bytes were taken without a word, $right are there"
