# Runs a program as a user without root, groups and packages, with the limits of a login: SCRATCH PROGRAM [WORD...]. It runs in namespaces of its own for
# mounts and processes. bare.sh has made SCRATCH.
set -eu
scratch=$1
shift
# Folders that root alone enters are closed to the user. Each is replaced by one with nothing but what the user needs of it.
mount -t tmpfs -o mode=755 tmpfs "$scratch/needed"
number=0
for needed in "$CARGO_HOME" "$RUSTUP_HOME" "$ROOT" "$TARGET"; do
    [ -d "$needed" ] || continue
    folder=$needed closed=
    while [ "$folder" != / ]; do
        folder=$(dirname "$folder")
        case $(stat -c %A "$folder") in *[xt]) ;; *) closed=$folder ;; esac
    done
    [ -n "$closed" ] || continue
    number=$((number + 1))
    mkdir "$scratch/needed/$number"
    mount --rbind "$needed" "$scratch/needed/$number"
    printf '%s\n' "$closed" >> "$scratch/needed/closed"
    printf '%s\n' "$needed" >> "$scratch/needed/names"
done
if [ $number != 0 ]; then
    sort -u "$scratch/needed/closed" | while read -r closed; do mount -t tmpfs -o mode=755 tmpfs "$closed"; done
    number=0
    while read -r needed; do
        number=$((number + 1))
        mkdir -p "$needed"
        mount --move "$scratch/needed/$number" "$needed"
    done < "$scratch/needed/names"
fi
# Tests write below the build's folder.
mount --bind "$scratch/tmp" "$TARGET/tmp"
export PATH="$scratch/bin:$CARGO_HOME/bin" HOME="$scratch/home" USER=somebody LOGNAME=somebody
# The repository is another user's.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
user=$(stat -c %u "$scratch/home")
# The shell stays, as the first process of the namespace: a program that is the first one is a case of its own.
prlimit --nofile=1024:20000 --memlock=8388608 setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all \
    --bounding-set=-all "$@" || exit
