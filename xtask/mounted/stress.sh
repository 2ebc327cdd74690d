# All kinds of calls, one kind after the other. Code 4: this machine lacks some of them. The kind binderfs uses a file system of
# its own, and a kernel without that one is code 3, as a mount without room is.
kinds=$(stress-ng --class 'filesystem?' | sed 's/.*: *//' | wc -w)
each=$(($7 / kinds))
[ "$each" -gt 0 ] || each=1
stress-ng --class filesystem --exclude binderfs --sequential 2 --timeout "$each" --verify --temp-path "$1" \
    > "$2/out" 2>&1 || [ $? = 4 ] || { grep -i fail "$2/out"; exit 1; }
rm -rf "$1"/tmp-stress-ng-*
[ -z "$(ls -A "$1")" ]
