# Close-to-open between two clients: bytes, sizes, names and times of one are seen by an open of the other, at once:
# close-to-open:ROUNDS, or close-to-open
# limit: 600
all_mounted nosharecache
mounted /mnt/b nosharecache
rounds=${ARG:-40}
for round in $(seq $rounds); do
    head -c $((round * 1777 % 70000)) /dev/urandom > $WORK/bytes
    cat $WORK/bytes > /mnt/a/file
    cmp $WORK/bytes /mnt/b/file
    same "$(stat -c %s /mnt/b/file)" "$(stat -c %s $WORK/bytes)" "round $round"
    head -c 4096 /dev/urandom | dd of=/mnt/b/file bs=4096 seek=$((round % 9)) conv=notrunc status=none
    same "$(sha256sum < /mnt/a/file)" "$(sha256sum < /mnt/b/file)" "round $round"
    same "$(sha256sum < /mnt/a/file)" "$(sha256sum < $DATA/file)" "the disk in round $round"
done
# The same size, the same second: only the change time tells.
for round in $(seq $rounds); do
    printf '%08d' "$round" > /mnt/a/stamp
    same "$(cat /mnt/b/stamp)" "$(printf '%08d' "$round")"
    printf '%08d' "$((round + 1000))" > /mnt/b/stamp
    same "$(cat /mnt/a/stamp)" "$(printf '%08d' "$((round + 1000))")"
done
# A file replaced by a rename, and one appended by both in turns.
for round in $(seq $((rounds / 2))); do
    echo "$round" > /mnt/b/new
    mv /mnt/b/new /mnt/b/stamp
    same "$(cat /mnt/a/stamp)" "$round"
    echo "a $round" >> /mnt/a/log
    echo "b $round" >> /mnt/b/log
done
same "$(wc -l < /mnt/a/log)" $((rounds / 2 * 2))
same "$(sha256sum < /mnt/a/log)" "$(sha256sum < /mnt/b/log)"
echo "= $rounds rounds"
