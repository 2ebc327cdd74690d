# What cases share. A case is a script of bash with `set -eu -o pipefail`, in namespaces of its own for mounts, network and processes.
# PROGRAM is the server, in a machine /run/built/afflux; RIG is this folder, /run/rig; WORK is an empty folder, /run/shared. When the case ends,
# the kernel ends all that it started.
#
# A machine is a Linux that runs as a process. Its root is the host's, read only, so it has the host's programs.

HOST=10.77.0.1
# The record of starts is the case's own.
export XDG_STATE_HOME=$WORK/usual
declare -A PROCESS

wrong() { echo "WRONG: $*" >&2; exit 1; }
same() { [ "$1" = "$2" ] || wrong "'$1' is not '$2'${3:+: $3}"; }
fails() { if "$@"; then wrong "succeeded: $*"; fi; }

# Waits for a condition: eventually SECONDS COMMAND...
eventually() {
    local end=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt $end ] || wrong "never: $*"
        sleep 0.05
    done
}

# What a reader of a wrong case's log wants to know.
at_the_end() {
    local code=$?
    [ $code = 0 ] || for log in "$WORK"/server.log "$WORK"/ctl/*/console; do
        [ ! -e "$log" ] || { echo "-- the end of ${log#"$WORK"/}"; tail -n 15 "$log"; }
    done
    exit $code
}
trap at_the_end EXIT

# The network of the host and its machines.
ip link set lo up
ip link add name machines type bridge
ip address add $HOST/24 dev machines
ip link set machines up

# Boots a machine and waits until it takes commands: machine NAME NUMBER [WORDS OF THE KERNEL...]
machine() {
    local name=$1 number=$2 ctl=$WORK/ctl/$1
    shift 2
    if ! ip link show "tap-$name" > /dev/null 2>&1; then
        ip tuntap add "tap-$name" mode tap
        # User Mode Linux drops frames that are longer than its own.
        ip link set "tap-$name" gso_max_segs 1 master machines up
    fi
    rm -rf "$ctl" "$WORK/uml/$name"
    mkdir -p "$ctl" "$WORK/uml"
    [ -e "$WORK/registers.so" ] || cc -O1 -Wall -Werror -shared -fPIC -o "$WORK/registers.so" "$RIG/registers.c"
    # A group of its own takes signals as a whole.
    setsid env LD_PRELOAD="$WORK/registers.so" linux.uml rootfstype=hostfs rootflags=/ ro init="$RIG/init" mem=256M con=null con0=null,fd:1 quiet \
        uml_dir="$WORK/uml" umid="$name" vec0:transport=tap,ifname="tap-$name",depth=128,gro=0,mac="02:00:00:00:00:0$number" \
        name="$name" address="10.77.0.$number" work="$WORK" rig="$RIG" built="${PROGRAM%/*}" "$@" < /dev/null > "$ctl/console" 2>&1 &
    PROCESS[$name]=$!
    eventually 300 eval "[ -e '$ctl/up' ] || ! kill -0 ${PROCESS[$name]}"
    [ -e "$ctl/up" ] || wrong "machine $name does not start"
}
# The power of a machine goes.
power_cut() {
    kill -KILL -- "-${PROCESS[$1]}"
    wait "${PROCESS[$1]}" 2> /dev/null || true
    eventually 60 eval "! kill -0 -- -${PROCESS[$1]}"
}
# The machine alone: it traces its programs, which stand still without it.
suspend() { kill -STOP "${PROCESS[$1]}"; }
resume() { kill -CONT "${PROCESS[$1]}"; }

# Has a machine run a script, and keeps the run's name in BEGUN: begin NAME SCRIPT
begin() {
    BEGUN=$(mktemp "$WORK/ctl/$1/XXXXXXXX")
    printf '%s\n' "$2" > "$BEGUN"
    mv "$BEGUN" "$BEGUN.sh"
}
has_ended() { [ -e "$1.rc" ]; }
# Waits for the end of a script that began, prints what it said, and has its exit code: ended BEGUN
ended() {
    eventually 300 has_ended "$1"
    cat "$1.out"
    return "$(< "$1.rc")"
}
# Runs a script in a machine: on NAME SCRIPT
on() { begin "$@"; ended "$BEGUN"; }

# An empty file system of the host, mounted: disk FOLDER [KIND]
disk() {
    truncate -s 1G "$1.image"
    case ${2:-ext4} in
        ext4) mkfs.ext4 -q -F "$1.image" ;;
        *) "mkfs.$2" -q -f "$1.image" ;;
    esac
    mkdir -p "$1"
    mount -o loop "$1.image" "$1"
    [ ! -e "$1/lost+found" ] || rmdir "$1/lost+found"
}

# The words of each server: machines act as they like.
SERVE="--allow 10.77.0.0/24 --squash none --rpcbind off --cache 64MiB"
# Our server on the host: serve FOLDER... [FLAGS]
serve() {
    SERVED=("$@")
    # shellcheck disable=SC2086
    "$PROGRAM" serve "$@" --listen $HOST:2049 $SERVE --state "$WORK/state" --control "$WORK/control" >> "$WORK/server.log" 2>&1 &
    SERVER=$!
    eventually 60 answers $HOST
}
answers() { timeout 2 bash -c "exec 9<> /dev/tcp/$1/2049"; }
stop_server() { kill -TERM $SERVER; wait $SERVER || wrong "the server ended with $?"; }
# The server is killed, and starts again with the same words.
killed() {
    kill -KILL $SERVER
    wait $SERVER 2> /dev/null || true
    serve "${SERVED[@]}"
}
alive() { kill -0 $SERVER || wrong "the server ended"; }

# The options of a mount by version 3, which has no lock of its own here. All others are of the client's choice.
V3=vers=3,tcp,nolock,port=2049,mountport=2049,mountproto=tcp
