cp -a /usr/share/doc/tar "$2/a" 2> /dev/null || cp -a /etc/default "$2/a"
head -c 3000000 /dev/urandom > "$2/a/large"
rsync -aH "$2/a/" "$1/a/"
dd if=/dev/urandom of="$2/a/large" bs=1000 count=7 seek=400 conv=notrunc 2> /dev/null
# -I: the change is in the same second as the copy before, and rsync compares whole seconds.
rsync -aHI --no-whole-file --inplace "$2/a/" "$1/a/"
[ -z "$(rsync -aHnci "$2/a/" "$1/a/")" ]
diff -r "$2/a" "$1/a"
