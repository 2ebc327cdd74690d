# Disks that hold names equal and keep coarse times: folded:vfat, folded:exfat, folded:ext4 (a directory that folds names). Through our mount
# and through NFS a listing has no name that is gone, and the times that a program is told stay over a restart.
# limit: 1200
[ $SERVER = afflux ] || skip "this is about our server"
kind=${ARG:-vfat}
mkdir -p $WORK $DATA
later "rm -rf $WORK"
later "umount -l $DATA"
case $kind in
    vfat) mkfs.vfat -F 32 /dev/vdd > /dev/null ;;
    exfat) mkfs.exfat /dev/vdd > /dev/null ;;
    ext4) mkfs.ext4 -q -F -I 128 -O casefold /dev/vdd 2> /dev/null ;;
esac
mount /dev/vdd $DATA
case $kind in
    ext4) mkdir $DATA/m; chattr +F $DATA/m ;;
    *) mkdir $DATA/m ;;
esac
mkdir $DATA/m/kept
# mv(1) refuses a rename to the same file: renamed NAME NAME
renamed() { python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$@"; }
began() { case $front in mount) mount_own $DATA /mnt/a ;; nfs) serve $DATA; mounted /mnt/a "$@" ;; esac; }
over() { umount /mnt/a; systemctl stop served 2> /dev/null || true; systemctl reset-failed served 2> /dev/null || true; }
# The host's listing and ours are alike, and each name that is listed is there: alike WORDS
alike() {
    same "$(cd /mnt/a/m; find . | sort)" "$(cd $DATA/m; find . | sort)" "$front: $1"
    (cd /mnt/a/m; find . -exec stat {} + > /dev/null) || wrong "$front: $1: a name that is not there"
}
for front in mount nfs; do
    began
    cd /mnt/a/m
    alike "at first"
    touch Foo
    alike "touch"
    rm foo
    alike "rm by another case"
    same "$(ls)" kept
    mkdir Dd
    alike mkdir
    rmdir dD
    alike "rmdir by another case"
    echo one > Name
    echo two > nAME
    same "$(cat Name)" two
    alike "overwritten by another case"
    mv name Other
    alike "renamed by another case"
    renamed other OTHER
    alike "renamed to another case"
    mkdir sub
    mv OTHER SUB/Inner
    alike "moved by another case"
    echo three > Third
    mv Third sub/INNER
    alike "replaced by another case"
    same "$(cat sub/inner)" three
    if [ $kind != ext4 ]; then
        # These disks keep no dot at the end of a name.
        touch 'tail.'
        alike "a dot at the end"
        rm tail
        alike "rm without the dot"
    fi
    touch 'Größe'
    alike "letters beyond ASCII"
    rm 'GRÖßE'
    alike "rm of letters beyond ASCII"
    rm -r SUB
    alike "rm -r"
    same "$(ls)" kept
    cd /

    # Times: as they are told first, they are told after a restart, and by the host.
    head -c 100000 /dev/urandom > /mnt/a/m/f
    echo more >> /mnt/a/m/f
    mkdir /mnt/a/m/d
    touch -d '2020-02-03 04:05:07.987654321' /mnt/a/m/set
    mkdir -p $WORK/source
    for number in 1 2 3; do echo $number > $WORK/source/f$number; sleep 0.3; done
    rsync -rt $WORK/source/ /mnt/a/m/copies/
    told() { (cd "$1"; stat -c '%n %.9Y' f d set copies/f?); }
    told /mnt/a/m > $WORK/first
    over
    told $DATA/m > $WORK/host
    diff $WORK/first $WORK/host || wrong "$front: times on the host"
    umount $DATA
    mount /dev/vdd $DATA
    began
    told /mnt/a/m > $WORK/second
    diff $WORK/first $WORK/second || wrong "$front: times after a restart"
    case $kind in
        # Odd seconds of the source do not fit on this disk.
        vfat) rsync -rtni --modify-window=1 $WORK/source/ /mnt/a/m/copies/ > $WORK/again ;;
        *) rsync -rtni --modify-window=1 $WORK/source/ /mnt/a/m/copies/ > $WORK/again ;;
    esac
    same "$(cat $WORK/again)" "" "$front: files that rsync would copy again"
    sed 's/^/= '$front': /' $WORK/first | head -n 2
    rm -r /mnt/a/m/*
    mkdir /mnt/a/m/kept
    over
done
