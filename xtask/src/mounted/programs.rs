//! The programs that run on a mount.
//!
//! Owns: each program's script with its expected result.
//! Does not own: the mount, the memory gate (`memory`).
//! Invariants: a script compares its result exactly, and fails for any difference.

/// One program as a script: `$1` is its folder on the mount, `$2` its folder on the host, `$3` the way of the mount,
/// `$4` the number of fsx's operations by each seed, `$5` the place of its files, `$6` the number of fsx's seeds, `$7` the
/// seconds of a load whose length is free, `$8` fsx's first seed.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The package or program that it needs.
    pub(super) needs: &'static str,
    /// Empty for the memory gate (`memory`), which has a mount of its own.
    pub(super) script: &'static str,
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "fio",
        needs: "fio",
        script: "fio --name=verify --directory=\"$1\" --rw=randrw --bsrange=512-64k --size=24m --verify=crc32c \
                 --do_verify=1 --verify_state_save=0 --fsync=97 --minimal > \"$2/out\"; \
                 fio --name=seq --directory=\"$1\" --rw=write --bs=256k --size=64m --verify=crc32c --do_verify=1 \
                 --verify_state_save=0 --end_fsync=1 --minimal > \"$2/out2\"",
    },
    Program {
        name: "tar",
        needs: "tar",
        script: "mkdir \"$2/tree\"; i=0; while [ $i -lt 40 ]; do mkdir -p \"$2/tree/d$i/e\"; j=0; \
                 while [ $j -lt 25 ]; do head -c $((i * j * 37)) /dev/urandom > \"$2/tree/d$i/f$j\"; j=$((j + 1)); done; \
                 ln -s ../d0/f1 \"$2/tree/d$i/l\"; ln \"$2/tree/d$i/f1\" \"$2/tree/d$i/hard\"; i=$((i + 1)); done; \
                 tar -C \"$2\" -cf \"$2/tree.tar\" tree; tar -C \"$1\" -xf \"$2/tree.tar\"; \
                 diff -r \"$2/tree\" \"$1/tree\"; tar -C \"$1\" -df \"$2/tree.tar\"; rm -r \"$1/tree\"; \
                 [ -z \"$(ls -A \"$1\")\" ]",
    },
    Program {
        name: "rsync",
        needs: "rsync",
        // -I: the change is in the same second as the copy before, and rsync compares whole seconds.
        script: "cp -a /usr/share/doc/tar \"$2/a\" 2> /dev/null || cp -a /etc/default \"$2/a\"; \
                 head -c 3000000 /dev/urandom > \"$2/a/large\"; rsync -aH \"$2/a/\" \"$1/a/\"; \
                 dd if=/dev/urandom of=\"$2/a/large\" bs=1000 count=7 seek=400 conv=notrunc 2> /dev/null; \
                 rsync -aHI --no-whole-file --inplace \"$2/a/\" \"$1/a/\"; \
                 [ -z \"$(rsync -aHnci \"$2/a/\" \"$1/a/\")\" ]; diff -r \"$2/a\" \"$1/a\"",
    },
    Program {
        name: "git",
        needs: "git",
        script: "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; \
                 g() { git -c user.name=t -c user.email=t@t -c safe.directory='*' -C \"$1/r\" \"$@\"; }; \
                 git init -q \"$1/r\"; cd \"$1/r\"; i=0; while [ $i -lt 20 ]; do seq $((i * 300)) > \"f$i\"; \
                 git -c user.name=t -c user.email=t@t add -A; \
                 git -c user.name=t -c user.email=t@t commit -qm \"$i\"; i=$((i + 1)); done; \
                 git gc -q; git fsck --full --strict; git clone -q \"$1/r\" \"$1/c\"; cd \"$1/c\"; \
                 [ \"$(git log --oneline | wc -l)\" = 20 ]; git status --porcelain > \"$2/status\"; [ ! -s \"$2/status\" ]",
    },
    Program {
        name: "sqlite",
        needs: "sqlite3",
        script: "db() { sqlite3 -cmd 'PRAGMA synchronous=FULL' \"$1\" \"$2\"; }; \
                 db \"$1/d\" 'CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);'; \
                 i=0; while [ $i -lt 30 ]; do db \"$1/d\" \"BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 \
                 FROM n WHERE x < 100) INSERT INTO t(b) SELECT hex(randomblob(50)) FROM n; COMMIT;\"; i=$((i + 1)); done; \
                 db \"$1/d\" 'DELETE FROM t WHERE a % 3 = 0; VACUUM;'; \
                 [ \"$(db \"$1/d\" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\\n' ' ')\" = 'ok 2000 ' ]",
    },
    Program {
        name: "fsx",
        needs: "fsx",
        // fsx 0.3.2 keeps each mapping that it reads by. So a seed grows slow with its operations, and some 200,000 reach the
        // kernel's limit of mappings: many seeds of 20,000 do more in the same time.
        script: "echo '[opsize]\nmax = 65536\n[weights]' > \"$2/fsx.toml\"; [ $3 = fuse ] && echo 'punch_hole = 1\n\
                 copy_file_range = 1' >> \"$2/fsx.toml\" || echo 'mapread = 0\nmapwrite = 0\npunch_hole = 0\n\
                 posix_fallocate = 0' >> \"$2/fsx.toml\"; seed=$8; while [ $seed -lt $(($8 + $6)) ]; do rm -f \"$1/file\"; \
                 fsx -f \"$2/fsx.toml\" -N $4 -S $seed \"$1/file\" > \"$2/out\" || { tail -n 30 \"$2/out\"; echo \"seed $seed\"; \
                 exit 1; }; [ $((seed % 10)) -ne 0 ] || echo \"         fsx: seed $seed\"; seed=$((seed + 1)); done",
    },
    Program {
        name: "pjdfstest",
        needs: "pjdfstest",
        // Over NFS version 3, a file removed while it is open still has a name: that test may fail. In a store, as on
        // btrfs, a directory has one link whatever is in it: so may the test of these. Sockets need paths below 108 bytes,
        // hence the link to the folder.
        script: "chmod 755 \"$1\"; printf '[settings]\\nnaptime = 1.1\\nallow_remount = false\\n[dummy_auth]\\nentries = \
                 [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"], [\"bin\", \"bin\"]]\\n' > \"$2/users.toml\"; \
                 link=$(mktemp -d); chmod 755 $link; ln -s \"$1\" $link/m; cd \"$1\"; \
                 pjdfstest -c \"$2/users.toml\" -p $link/m > \"$2/out\" 2>&1 || true; rm -r $link; grep '^Summary' \"$2/out\"; \
                 case $3-$5 in fuse-*) expected= ;; *-store) expected='rename::updates_link_parent unlink::open_file_not_freed' ;; \
                 *) expected=unlink::open_file_not_freed ;; esac; \
                 [ \"$(grep ' FAILED$' \"$2/out\" | cut -d' ' -f1 | sort | xargs)\" = \"$expected\" ]",
    },
];

/// Programs that need more than NFS has.
pub(super) const OF_FUSE: &[Program] = &[
    Program {
        name: "sqlite-wal",
        needs: "sqlite3",
        // The log's index is a mapping that processes share.
        script: "sqlite3 \"$1/d\" 'PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);' > /dev/null; \
                 add() { i=0; while [ $i -lt 40 ]; do sqlite3 -cmd '.timeout 20000' \"$1/d\" \"INSERT INTO t(b) VALUES \
                 (hex(randomblob(300)));\"; i=$((i + 1)); done; }; add \"$1\" & add \"$1\"; wait; \
                 [ \"$(sqlite3 \"$1/d\" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\\n' ' ')\" = 'ok 80 ' ]",
    },
    Program {
        name: "cargo",
        needs: "cargo",
        // A workspace of its own: the mount may be below this one.
        script: "mkdir -p \"$1/src\"; cd \"$1\"; echo '[workspace]\n[package]\nname = \"small\"\nedition = \"2024\"' \
                 > Cargo.toml; echo 'fn main() { println!(\"ran\") }' > src/main.rs; export CARGO_TARGET_DIR=\"$1/target\"; \
                 cargo build -q --offline; [ \"$(target/debug/small)\" = ran ]; touch src/main.rs; \
                 cargo build -q --offline --release; [ \"$(target/release/small)\" = ran ]",
    },
    Program {
        name: "stress",
        needs: "stress-ng",
        // All kinds of calls, one kind after the other. Code 4: this machine lacks some of them. The kind binderfs uses a file
        // system of its own, and a kernel without that one is code 3, as a mount without room is.
        script: "kinds=$(stress-ng --class 'filesystem?' | sed 's/.*: *//' | wc -w); each=$(($7 / kinds)); \
                 [ $each -gt 0 ] || each=1; stress-ng --class filesystem --exclude binderfs --sequential 2 --timeout $each \
                 --verify --temp-path \"$1\" > \"$2/out\" 2>&1 || [ $? = 4 ] || { grep -i fail \"$2/out\"; exit 1; }; \
                 rm -rf \"$1\"/tmp-stress-ng-*; [ -z \"$(ls -A \"$1\")\" ]",
    },
    Program { name: "memory", needs: "python3", script: "" },
];
