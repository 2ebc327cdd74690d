# What cases share. A case is a script of bash with `set -eu -o pipefail`; SERVER is the server of its mount, `afflux` or `knfsd`.
#
# A case prints `= TEXT` for a figure that the host keeps. It leaves nothing behind: `later COMMAND` runs the command at its end.

SERVER=${SERVER:-afflux}
[ -n "$SERVER" ] || SERVER=afflux
PORT=3049
# The address of our server, and that of the client which knfsd serves.
LISTEN=127.0.0.1
CLIENT=127.0.0.1
DATA=/srv/data
WORK=/var/tmp/work
OPTIONS=vers=3,tcp,hard,nolock
later=()

later() { later=("$*" "${later[@]}"); }
at_the_end() {
    local code=$?
    set +e
    cd /
    case $code in 0 | 77) ;; *) state ;; esac
    for command in "${later[@]}"; do eval "$command" > /dev/null 2>&1; done
    exit $code
}
trap at_the_end EXIT

# What a reader of a wrong case's log wants to know.
state() {
    echo "-- the processes that wait, the server's words and figures, the kernel's last words"
    ps -eLo pid,lwp,stat,comm,args | awk '$3 ~ /^D/' | while read -r pid lwp rest; do
        echo "$pid $lwp $rest"
        sed 's/^/    /' "/proc/$pid/task/$lwp/stack"
    done
    timeout 10 journalctl -q -u served -u afflux -u 'afflux-mount@*' -n 20 -o cat
    for socket in /run/served.sock /run/afflux/*.sock; do
        [ ! -S $socket ] || timeout 10 afflux stat --control $socket --verbose
        [ ! -S $socket ] || timeout 10 afflux delays --control $socket
    done
    dmesg | tail -n 15
    echo "--"
}

skip() { echo "$*"; exit 77; }
wrong() { echo "WRONG: $*" >&2; exit 1; }

# Waits for a condition: eventually SECONDS COMMAND...
eventually() {
    local end=$((SECONDS + $1)); shift
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $end ] || wrong "never: $*"
        sleep 0.2
    done
}

# Fails unless the command fails.
fails() { if "$@"; then wrong "succeeded: $*"; fi; }
same() { [ "$1" = "$2" ] || wrong "'$1' is not '$2'${3:+: $3}"; }

# Asks the host: host monitor COMMAND...
host() {
    local said
    printf '@host %s\n' "$*" > /dev/ttyS1
    read -r said < /dev/ttyS1
    case $said in ok*) printf '%s\n' "${said#ok }" ;; *) wrong "host: $said" ;; esac
}

# After a reset the case goes on with the next STAGE.
next_stage() {
    echo $((STAGE + 1)) > "/var/lib/guest/$CASE.stage"
    sync -f /var/lib/guest
}

# The machine is reset as by its button.
reset() {
    next_stage
    printf '@reset\n' > /dev/ttyS1
    sleep 60
}

# A folder of the server, on the disk of this name; an empty file system, the same in each case.
disk() {
    local device=$1 point=$2
    shift 2
    mkfs.ext4 -q -F "$device"
    mkdir -p "$point"
    mount "$@" "$device" "$point"
    later "umount -l $point"
}

# A server of two disks, at /mnt/a over a map of this name and kind and at /mnt/b: two_disks NAME TARGET [ARGUMENTS]
two_disks() {
    dmsetup create "$1" --table "0 $(blockdev --getsz /dev/vdc) $2 /dev/vdc 0 ${3:-}"
    later "dmsetup resume $1; umount -l /srv/$1; dmsetup remove --retry $1"
    disk "/dev/mapper/$1" "/srv/$1"
    disk /dev/vdd /srv/other
    serve "/srv/$1" /srv/other
    EXPORT=/$1 mounted /mnt/a
    EXPORT=/other mounted /mnt/b
    mkdir -p $WORK
}

# A mapped disk answers no request: hang NAME SECONDS. It goes on by itself after that time: programs that wait for it cannot be
# ended before, and neither can the case.
hang() {
    systemd-run -q --unit="resume-$1" --on-active="$2" --timer-property=AccuracySec=1s dmsetup resume "$1"
    dmsetup suspend --noflush --nolockfs "$1"
}
resume() {
    systemctl stop "resume-$1.timer" 2> /dev/null || true
    dmsetup resume "$1"
}

# Our server, as root, in a unit of its own, so that its end by itself is seen: serve FOLDER... [FLAGS]
serve() {
    mkdir -p /var/tmp/state
    systemd-run -q --unit=served --property=KillMode=process --property=LimitMEMLOCK=infinity --property=LimitCORE=0 \
        afflux serve "$@" --listen $LISTEN:$PORT --cache "${CACHE:-64MiB}" --state /var/tmp/state --control /run/served.sock
    later "journalctl -q -u served -n 40 -o cat > /var/tmp/served.log; systemctl stop served; systemctl reset-failed served"
    answers
}
served_pid() { systemctl show -P MainPID served; }
answers() { eventually 60 bash -c "exec 9<> /dev/tcp/$LISTEN/$PORT"; }
killed() {
    kill -9 "$(served_pid)"
    eventually 10 bash -c '! systemctl -q is-active served'
    systemctl reset-failed served 2> /dev/null || true
}
control() { afflux "$1" --control /run/served.sock "${@:2}"; }

# Linux's own server of the same folders: knfsd FOLDER...
knfsd() {
    local folder fsid=7
    mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
    # The start of the service takes away exports that are in no file.
    systemctl start nfs-server
    for folder; do
        exportfs -o "rw,sync,no_root_squash,no_subtree_check,insecure,fsid=$fsid" "$CLIENT:$folder"
        fsid=$((fsid + 1))
    done
    later "exportfs -ua; systemctl stop nfs-server nfs-mountd rpcbind rpcbind.socket"
}

# Mounts the server's folder: mounted POINT [OPTIONS]
mounted() {
    local point=$1 options=$OPTIONS${2:+,$2}
    mkdir -p "$point"
    # Version 4 has no other port.
    local ports=port=$PORT,mountport=$PORT,mountproto=tcp
    case $options in *vers=3*) ;; *) ports=port=$PORT ;; esac
    case $SERVER in
        afflux) mount -t nfs -o "$options,$ports" "127.0.0.1:${EXPORT:-/}" "$point" ;;
        knfsd) mount -t nfs -o "$options" "127.0.0.1:$DATA${EXPORT:-}" "$point" ;;
    esac
    later "umount -f -l $point"
}

# A server of an empty disk, and a mount of it at /mnt/a.
all_mounted() {
    disk /dev/vdc $DATA
    case $SERVER in afflux) serve $DATA ;; knfsd) knfsd $DATA ;; esac
    mounted /mnt/a "${1:-}"
    mkdir -p $WORK
    later "rm -rf $WORK"
}

# A program overwrites a file with these bytes, and the client sends them, but no COMMIT. The program keeps the file open, because the
# client commits at a close. It is the process WRITER: sent_uncommitted FILE BYTES
sent_uncommitted() {
    rm -f $WORK/sent
    python3 - "$1" "$2" $WORK/sent <<'P' &
import ctypes, os, signal, sys
file, content, sent = sys.argv[1:]
descriptor = os.open(file, os.O_WRONLY)
os.write(descriptor, open(content, "rb").read())
ctypes.CDLL(None).sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), 7)
open(sent, "w").close()
signal.pause()
P
    WRITER=$!
    later "kill $WRITER"
    eventually 500 test -e $WORK/sent
}
# WRITE calls that the client has sent over all mounts.
writes_sent() { awk '$1 == "WRITE:" { writes += $2 } END { print writes }' /proc/self/mountstats; }

# Our own mount of a folder, in a unit of its own: mount_own FOLDER POINT [FLAGS]
mount_own() {
    mkdir -p /var/tmp/state "$2"
    systemd-run -q --unit=served --property=KillMode=process --property=LimitCORE=0 \
        afflux mount "$@" --cache "${CACHE:-64MiB}" --state /var/tmp/state --control /run/served.sock
    later "umount -l $2; journalctl -q -u served -n 40 -o cat > /var/tmp/served.log; systemctl stop served; systemctl reset-failed served"
    eventually 60 mountpoint -q "$2"
}

# Fails unless the server of the case runs, and never ended.
alive() {
    systemctl -q is-active served || { journalctl -q -u served -n 20 -o cat; wrong "the server ended"; }
}
# Ends the server of the case, which may have failed to write, or have ended with its mount.
ended() { systemctl stop served 2> /dev/null || true; systemctl reset-failed served 2> /dev/null || true; }

# The service's configuration: the data folder on the port of all cases, a small cache, and these knobs
configured() {
    sed -i -e "s|^#directories = .*|directories = [\"$DATA\"]|" -e "s|^#listen = .*|listen = \"127.0.0.1:$PORT\"|" \
        -e 's|^#cache = .*|cache = "64MiB"|' /etc/afflux/config.toml
    printf '%s\n' "$@" >> /etc/afflux/config.toml
}
