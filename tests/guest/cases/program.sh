# An ordinary program on the mount: program:tar, program:fio, program:git, program:sqlite, program:rsync
# limit: 900
all_mounted
cd /mnt/a
tree() {
    mkdir -p "$1"
    for folder in $(seq 12); do
        mkdir "$1/d$folder"
        for file in $(seq 12); do head -c $((folder * file * 331)) /dev/urandom > "$1/d$folder/f$file"; done
        ln -s ../d1/f1 "$1/d$folder/symbolic"
        ln "$1/d$folder/f1" "$1/d$folder/hard"
    done
}
tar_() {
    tree $WORK/tree
    tar -C $WORK -cf $WORK/tree.tar tree
    tar -xf $WORK/tree.tar
    diff -r $WORK/tree tree
    tar -df $WORK/tree.tar
    rm -r tree
    same "$(ls)" lost+found
}
fio_() {
    fio --name=verify --rw=randrw --bsrange=512-64k --size=8m --verify=crc32c --do_verify=1 --verify_state_save=0 \
        --fsync=97 --minimal > $WORK/out
    fio --name=sequential --rw=write --bs=256k --size=24m --verify=crc32c --do_verify=1 --verify_state_save=0 \
        --end_fsync=1 --minimal > $WORK/out
    fio --name=mapped --ioengine=mmap --rw=randrw --bs=4k --size=4m --verify=crc32c --do_verify=1 --verify_state_save=0 \
        --minimal > $WORK/out
}
git_() {
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$WORK
    git init -q r 2> /dev/null
    git -C r config user.name t
    git -C r config user.email t@t
    for number in $(seq 8); do
        seq $((number * 300)) > r/f$number
        git -C r add -A
        git -C r commit -qm "$number"
    done
    git -C r gc -q
    git -C r fsck --full --strict
    git clone -q r c
    same "$(git -C c log --oneline | wc -l)" 8
    same "$(git -C c status --porcelain)" ""
}
sqlite_() {
    db() { sqlite3 -cmd 'PRAGMA synchronous=FULL' d "$1"; }
    db 'CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);'
    for number in $(seq 10); do
        db 'BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x < 100)
            INSERT INTO t(b) SELECT hex(randomblob(50)) FROM n; COMMIT;'
    done
    db 'DELETE FROM t WHERE a % 5 = 0; VACUUM;'
    same "$(db 'PRAGMA integrity_check; SELECT count(*) FROM t;' | xargs)" "ok 800"
}
rsync_() {
    tree $WORK/tree
    head -c 1000000 /dev/urandom > $WORK/tree/large
    rsync -aH $WORK/tree/ copy/
    dd if=/dev/urandom of=$WORK/tree/large bs=1000 count=7 seek=400 conv=notrunc status=none
    rsync -aHI --no-whole-file --inplace $WORK/tree/ copy/
    same "$(rsync -aHnci $WORK/tree/ copy/)" ""
    diff -r $WORK/tree copy
}
began=$SECONDS
"${ARG}_"
echo "= $((SECONDS - began)) s"
cd /
