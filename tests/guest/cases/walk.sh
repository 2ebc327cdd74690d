# Linux's client walks over an export with further file systems below it: find, du, tar and rsync see each object once and store its own
# bytes. Numbers of files are alike on the disks, so a client that took them for one disk would confuse them.
# limit: 900
[ $SERVER = afflux ] || skip "knfsd shows a mount point below with the number of the upper disk, and find tells of a loop"
mkdir -p $WORK
later "rm -rf $WORK"
disk /dev/vdc $DATA
disk /dev/vdd $DATA/below
mkdir $DATA/below/memory
mount -t tmpfs -o size=20m memory $DATA/below/memory
later "umount -l $DATA/below/memory"
for place in . below below/memory; do
    mkdir -p $DATA/$place/a/b
    for number in 1 2 3 4; do
        echo "$place $number" > $DATA/$place/a/f$number
        ln $DATA/$place/a/f$number $DATA/$place/a/b/g$number
        head -c $((number * 50000)) /dev/urandom > $DATA/$place/a/h$number
    done
done
shown() { (cd "$1" && find . ! -path '*lost+found*' -printf "$2\n" | sort); }
shown $DATA '%p %y %m %n %s' > $WORK/host
same "$(find $DATA -type f | wc -l)" 36
serve $DATA
mounted /mnt/a
# The second look is at what the client keeps.
for look in first second; do
    find /mnt/a > $WORK/found 2> $WORK/errors
    same "$(cat $WORK/errors)" "" "find, $look look"
    shown /mnt/a '%p %y %m %n %s' > $WORK/seen
    diff $WORK/host $WORK/seen || wrong "find, $look look"
done
same "$(find /mnt/a -type f -printf '%D %i\n' | sort -u | wc -l)" "$(find $DATA -type f -printf '%D %i\n' | sort -u | wc -l)" "pairs of device and number"
same "$(shown /mnt/a '%i' | sort -u | wc -l)" "$(find $DATA ! -path '*lost+found*' -printf '%D %i\n' | sort -u | wc -l)" "numbers alone"
for words in "-s --apparent-size -B1 --exclude=lost+found" "-s -l --apparent-size -B1 --exclude=lost+found"; do
    du $words /mnt/a > $WORK/du 2> $WORK/errors
    same "$(cat $WORK/errors)" "" "du $words"
    du $words $DATA > $WORK/du-host
    # Directories of NFS have the size that the host tells.
    same "$(cut -f 1 $WORK/du)" "$(cut -f 1 $WORK/du-host)" "du $words"
done
tar -C /mnt/a --exclude=lost+found -cf $WORK/all.tar . 2> $WORK/errors
same "$(cat $WORK/errors)" "" tar
mkdir $WORK/tar $WORK/rsync
tar -C $WORK/tar -xf $WORK/all.tar
rsync -aH --exclude=lost+found /mnt/a/ $WORK/rsync/ 2> $WORK/errors
same "$(cat $WORK/errors)" "" rsync
cp -a /mnt/a $WORK/cp
rm -r $WORK/cp/lost+found $WORK/cp/below/lost+found
for copy in tar rsync cp; do
    diff -r -x lost+found $DATA $WORK/$copy > $WORK/differs || { cat $WORK/differs; wrong "the copy of $copy"; }
    same "$(find $WORK/$copy -type f -links 2 -printf '%i\n' | sort | uniq -c | awk '$1 == 2' | wc -l)" 12 "links of $copy"
done
same "$(rsync -aHnci --exclude=lost+found /mnt/a/ $WORK/rsync/)" ""
# Back over the client, into another folder of the export.
rsync -aH $WORK/rsync/ /mnt/a/back/
diff -r $WORK/rsync $DATA/back
echo "= $(grep -c /mnt/a /proc/mounts) mounts of the client"
umount -R /mnt/a
