# The first act after a mount touches nothing outside of the mounted path, whatever it names: `rm -rf`, `rsync --delete` and `cp -r` at the
# mount's root and at names of the server's own path, by version 4.2 and by 3. What a host's path mounts depends on no time and on no name.
disk "$WORK/disk"
export=$WORK/disk/srv/app
other=$WORK/disk/srv/data
mkdir -p "$WORK/source" "$export" "$other"
echo new > "$WORK/source/new"

fresh() {
    find "$WORK/disk/srv" -depth -mindepth 1 ! -path "$export" ! -path "$other" -delete
    mkdir -p "$export/below/deep" "$other/app"
    for file in "$export/file" "$export/below/file" "$export/below/deep/file" "$other/file" "$other/app/file" "$WORK/disk/srv/file"; do
        echo "precious ${file#"$WORK"}" > "$file"
    done
}
# The names and contents of all that the host has there.
tree() { (cd "$WORK/disk/srv" && find . -type d && find . -type f -exec grep -H '' {} +) | sort; }

# On a fresh mount of a path, an act is the first thing; then the host's tree is as if the act had been the host's own there.
# after_mount OPTIONS PATH FOLDER-OF-THE-HOST NAME-BELOW ACT
after_mount() {
    local what="$5 of '$4' at a mount of '$2' by ${1%%,*}" act source=/run/shared/source
    case $5 in
        rm) act='if [ -n "$name" ]; then rm -rf "$at"; else rm -rf "$at"/*; fi' ;;
        rsync) act='rsync -a --delete "$source/" "$at/" || [ -n "$parents" ]' ;;
        cp) act='cp -r "$source/." "$at" 2> /dev/null || cp -r "$source" "$at" || [ -n "$parents" ]' ;;
    esac
    local words="shopt -s dotglob nullglob; name='$4'; parents=; case \$name in */*) parents=yes ;; esac"
    fresh
    (source=$WORK/source at=$3${4:+/$4} && eval "$words; $act") > "$WORK/said" 2>&1 || wrong "$what fails on the host: $(cat "$WORK/said")"
    tree > "$WORK/expected"
    fresh
    on c1 "mount -t nfs -o $1 $HOST:$2 /mnt/a
        $words; source=$source; at=/mnt/a${4:+/$4}; $act
        umount /mnt/a" > "$WORK/said" 2>&1 || wrong "$what fails: $(cat "$WORK/said")"
    tree > "$WORK/found"
    diff "$WORK/expected" "$WORK/found" || wrong "$what"
}

# The host's path, its first name and its last one.
below_root=${export#/}
names="$below_root ${below_root%%/*} ${below_root##*/}"

machine c1 2
fresh
# One export: its root is the mount's root.
serve "$export"
for act in rm rsync cp; do
    for name in "" $names; do after_mount vers=4.2 / "$export" "$name" $act; done
    after_mount vers=4.2 /below "$export/below" "" $act
    after_mount "$V3" /below "$export/below" "" $act
done
# The host's path is no path of the export, before and after somebody makes a name of it; then it is that directory.
fresh
for options in vers=4.2 "$V3"; do
    rm -rf "${export:?}/${names%% *}"
    fails on c1 "mount -t nfs -o $options,retry=0 $HOST:$export /mnt/a" > "$WORK/said" 2>&1
    mkdir -p "$export/$export"
    echo inner > "$export/$export/inner"
    same "$(on c1 "mount -t nfs -o $options $HOST:$export /mnt/a; cat /mnt/a/inner; umount /mnt/a")" inner
done
alive
stop_server

# Two exports: each has a name, and a name of the one means nothing below the other.
fresh
serve "$export" "$other"
for act in rm rsync cp; do
    after_mount vers=4.2 /app "$export" data $act
    after_mount vers=4.2 /app "$export" app $act
    after_mount "$V3" /data "$other" app $act
done
alive
stop_server
