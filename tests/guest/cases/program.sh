# An ordinary program on the mount: program:NAME, of those that `cargo xtask mounted` has.
# limit: 900
all_mounted
mkdir -p /mnt/a/here
began=$SECONDS
sh -c "set -e; $(cat "/kit/programs/$ARG")" sh /mnt/a/here $WORK bridge 1000 directory || {
    tail -n 5 $WORK/out 2> /dev/null
    wrong "$ARG"
}
echo "= $((SECONDS - began)) s"
