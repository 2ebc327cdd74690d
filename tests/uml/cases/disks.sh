# Two disks with XFS and one with vfat change places between two starts of the server's machine, whose power goes: a client that stays mounted
# reads and writes each disk under its own name, and never another one.
for name in x1 x2 fat; do
    truncate -s 400M "$WORK/$name.image"
    case $name in
        fat) mkfs.vfat -F 32 -n "${name^^}" "$WORK/$name.image" > /dev/null ;;
        *) mkfs.xfs -q -L "${name^^}" "$WORK/$name.image" ;;
    esac
done
truncate -s 64M "$WORK/system.image"
mkfs.ext4 -q -F -L SYSTEM "$WORK/system.image"

# Starts the server's machine with the disks in this order, each at the place of its label: start NAME...
start() {
    machine s 4 ubd0="$WORK/system.image" ubd1="$WORK/$1.image" ubd2="$WORK/$2.image" ubd3="$WORK/$3.image"
    on s "modprobe vfat; modprobe nls_cp437; modprobe nls_ascii; modprobe nls_iso8859-1 || true
        mkdir -p /mnt/x1 /mnt/x2 /mnt/fat /mnt/system
        mount -L SYSTEM /mnt/system
        for name in x1 x2 fat; do mount -L \${name^^} /mnt/\$name; done"
    begin s "ulimit -l unlimited; exec /run/built/afflux serve /mnt/x1 /mnt/x2 /mnt/fat --listen 10.77.0.4:2049 $SERVE --state /mnt/system/state --control /run/control"
    SERVER_RUN=$BEGUN
    eventually 120 eval "answers 10.77.0.4 || has_ended $SERVER_RUN"
    ! has_ended "$SERVER_RUN" || wrong "the server ended: $(ended "$SERVER_RUN")"
}
start x1 x2 fat
machine c1 2
on c1 "for name in x1 x2 fat; do
        mkdir -p /mnt/\$name /mnt/\$name.3
        mount -t nfs -o vers=4.2 10.77.0.4:/\$name /mnt/\$name
        mount -t nfs -o $V3 10.77.0.4:/\$name /mnt/\$name.3
        mkdir /mnt/\$name/folder
        echo \"of \$name\" > /mnt/\$name/folder/name
        cat /mnt/\$name.3/folder/name
        sync /mnt/\$name/folder/name
    done"
# Programs that keep a file and a folder of each open.
cat > "$WORK/keep.py" <<'P'
# POINT NAME TOLD GO: reads what it has open before a file GO is there, and after.
import errno, os, sys, time
point, name, told, go = sys.argv[1:]
folder = os.open(point + "/folder", os.O_RDONLY)
opened = os.open(point + "/folder/name", os.O_RDWR)
assert os.pread(opened, 100, 0).decode() == f"of {name}\n"
open(told, "w").close()
while not os.path.exists(go):
    time.sleep(0.05)
os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)


def tried(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode[error.errno]


def make():
    new = os.open("new." + os.path.basename(point), os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.write(new, f"new of {name}\n".encode())
    os.fsync(new)
    os.close(new)
    return "made"


print("bytes", tried(lambda: os.pread(opened, 100, 0).decode().strip()))
print("folder", tried(lambda: min(os.listdir(folder))))
print("new", tried(make))
P
declare -A keeper
for name in x1 x2 fat; do
    for point in $name $name.3; do
        begin c1 "python3 /run/shared/keep.py /mnt/$point $name /run/shared/$point.has /run/shared/go"
        keeper[$point]=$BEGUN
        eventually 60 test -e "$WORK/$point.has"
    done
done
on s 'sync'
power_cut s
start fat x1 x2
touch "$WORK/go"
for name in x1 x2 fat; do
    for point in $name $name.3; do
        said=$(ended "${keeper[$point]}")
        echo "$point: $said"
        case $name in
            # The UUID tells these disks apart, so all that is open goes on.
            x?) same "$said" "$(printf "bytes of $name\nfolder name\nnew made")" "at $point" ;;
            # Its inodes have other numbers after each mount. What is open may be lost, and is never another one's.
            fat) [[ ! $said =~ "of x" ]] || wrong "at $point: $said" ;;
        esac
    done
done
# By names, everything goes on everywhere.
on c1 "for name in x1 x2 fat; do
        for point in \$name \$name.3; do
            [ \$name != fat ] || { umount /mnt/\$point; case \$point in *.3) options=$V3 ;; *) options=vers=4.2 ;; esac; mount -t nfs -o \$options 10.77.0.4:/\$name /mnt/\$point; }
            [ \"\$(cat /mnt/\$point/folder/name)\" = \"of \$name\" ]
            echo \"again of \$name\" > /mnt/\$point/again
            sync /mnt/\$point/again
        done
    done"
for name in x1 x2 fat; do
    same "$(on s "cat /mnt/$name/again /mnt/$name/folder/name")" "$(printf "again of $name\nof $name")"
    [ $name = fat ] || same "$(on s "cat /mnt/$name/folder/new.* | sort -u")" "new of $name"
done
! has_ended "$SERVER_RUN" || wrong "the server ended: $(ended "$SERVER_RUN")"
