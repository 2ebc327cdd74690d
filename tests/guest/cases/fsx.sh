# fsx on the mount, mappings too: fsx:MOUNT-OPTIONS, or fsx
# limit: 2400
[ -x /kit/bin/fsx ] || skip "fsx is not in the kit"
all_mounted "$ARG"
printf '[opsize]\nmax = 65536\n[weights]\npunch_hole = 0\nposix_fallocate = 0\n' > $WORK/fsx.toml
operations=${OPERATIONS:-2000}
for seed in 1 2 3; do
    /kit/bin/fsx -f $WORK/fsx.toml -N $operations -S $seed /mnt/a/file > $WORK/out 2>&1 ||
        { tail -n 30 $WORK/out; wrong "seed $seed"; }
    echo "seed $seed: right after $SECONDS s"
done
echo "= 3 seeds of $operations operations, $(grep -o 'rsize=[0-9]*,wsize=[0-9]*' /proc/mounts | head -n 1)"
