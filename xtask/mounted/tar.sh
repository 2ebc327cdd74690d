mkdir "$2/tree"
for i in $(seq 0 39); do
    mkdir -p "$2/tree/d$i/e"
    for j in $(seq 0 24); do head -c $((i * j * 37)) /dev/urandom > "$2/tree/d$i/f$j"; done
    ln -s ../d0/f1 "$2/tree/d$i/l"
    ln "$2/tree/d$i/f1" "$2/tree/d$i/hard"
done
tar -C "$2" -cf "$2/tree.tar" tree
tar -C "$1" -xf "$2/tree.tar"
diff -r "$2/tree" "$1/tree"
tar -C "$1" -df "$2/tree.tar"
rm -r "$1/tree"
[ -z "$(ls -A "$1")" ]
