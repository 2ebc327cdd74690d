//! Runs ordinary programs on a mount: of our NFS server through a bridge, or of `afflux mount`.
//!
//! Owns: the server and the bridge, the programs, the expected results.
//! Does not own: the bridge (`tests/nfs-check/src/bin/fuse-bridge/main.rs`).
//! Invariants: each program has its own folder, and runs whether or not earlier ones failed. Server and bridge end with
//! the run. Programs that are not installed are named.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, race_nfs, repository};

const USAGE: &str = "usage: cargo xtask mounted [--fuse] [--profile NAME] [--keep] [NAME...]";
const PATIENCE: Duration = Duration::from_secs(30);

/// The mount that programs use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Our NFS server behind a FUSE bridge.
    Bridge,
    /// `afflux mount`.
    Fuse,
}

impl Way {
    fn word(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Fuse => "fuse",
        }
    }
}

/// One program as a script: `$1` is its folder on the mount, `$2` its folder on the host, `$3` the way of the mount.
struct Program {
    name: &'static str,
    /// The package or program that it needs.
    needs: &'static str,
    script: &'static str,
}

const PROGRAMS: &[Program] = &[
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
        script: "echo '[opsize]\nmax = 65536\n[weights]' > \"$2/fsx.toml\"; [ $3 = fuse ] && echo 'punch_hole = 1\n\
                 copy_file_range = 1' >> \"$2/fsx.toml\" || echo 'mapread = 0\nmapwrite = 0\npunch_hole = 0\n\
                 posix_fallocate = 0' >> \"$2/fsx.toml\"; fsx -f \"$2/fsx.toml\" -N 20000 -S 7 \"$1/file\"",
    },
    Program {
        name: "pjdfstest",
        needs: "pjdfstest",
        // Over NFS version 3, a file removed while it is open still has a name: only that test may fail. Sockets need
        // paths below 108 bytes, hence the link.
        script: "chmod 755 \"$1\"; printf '[settings]\\nnaptime = 1.1\\nallow_remount = false\\n[dummy_auth]\\nentries = \
                 [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"], [\"bin\", \"bin\"]]\\n' > \"$2/users.toml\"; \
                 link=$(mktemp -d); chmod 755 $link; ln -s \"$1\" $link/m; cd \"$1\"; \
                 pjdfstest -c \"$2/users.toml\" -p $link/m > \"$2/out\" 2>&1 || true; rm -r $link; grep '^Summary' \"$2/out\"; \
                 [ $3 = fuse ] && expected= || expected=unlink::open_file_not_freed; \
                 [ \"$(grep ' FAILED$' \"$2/out\" | cut -d' ' -f1)\" = \"$expected\" ]",
    },
];

/// Programs that need more than NFS has.
const OF_FUSE: &[Program] = &[
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
];

/// Builds the programs, mounts, and runs the named tests, or all.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (mut profile, mut keep, mut way, mut names) = ("demo", false, Way::Bridge, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--profile" => profile = words.next().context(USAGE)?,
            "--keep" => keep = true,
            "--fuse" => way = Way::Fuse,
            name => names.push(name),
        }
    }
    let of_way = if way == Way::Fuse { OF_FUSE } else { &[] };
    let all: Vec<_> = PROGRAMS.iter().chain(of_way).collect();
    if names.iter().any(|name| all.iter().all(|program| program.name != *name)) {
        bail!("{USAGE}\nnames: {}", all.iter().map(|program| program.name).collect::<Vec<_>>().join(", "));
    }
    let programs = build(profile)?;
    let scratch = Scratch::new(&repository::target(), "mounted")?;
    let place = scratch.path().to_path_buf();
    // pjdfstest acts as other users below it.
    fs::set_permissions(&place, Permissions::from_mode(0o711))?;
    let mounted = Mounted::start(&programs, &place, way)?;
    let mut failed = Vec::new();
    for program in all.iter().filter(|program| names.is_empty() || names.contains(&program.name)) {
        if !ci::on_path(program.needs) {
            println!("left out {}: {} is not installed", program.name, program.needs);
            continue;
        }
        let begin = Instant::now();
        let right = mounted.runs(program)?;
        println!(
            "{} {} ({:.1} s)",
            if right { "right   " } else { "WRONG   " },
            program.name,
            begin.elapsed().as_secs_f64()
        );
        if !right {
            failed.push(program.name);
        }
    }
    drop(mounted);
    if keep || !failed.is_empty() {
        println!("kept: {}", scratch.keep().display());
    }
    if !failed.is_empty() {
        bail!("wrong on the mount: {}; see {}", failed.join(", "), place.display());
    }
    Ok(())
}

/// The server and the bridge, built by the same command as the race's, so that one build serves both.
fn build(profile: &str) -> Result<(PathBuf, PathBuf)> {
    let folder = repository::build(profile, &race_nfs::PROGRAMS)?;
    Ok((folder.join("afflux"), folder.join("fuse-bridge")))
}

struct Mounted {
    place: PathBuf,
    way: Way,
    server: Child,
    bridge: Option<Child>,
}

impl Mounted {
    fn start((afflux, bridge): &(PathBuf, PathBuf), place: &Path, way: Way) -> Result<Self> {
        for folder in ["data", "mnt", "beside"] {
            fs::create_dir_all(place.join(folder)).context("making folders")?;
        }
        let ready = place.join("ready");
        let mut server = Command::new(afflux);
        match way {
            Way::Bridge => server.arg("serve").arg(place.join("data")).args(["--listen", "127.0.0.1:0"]),
            Way::Fuse => server.arg("mount").arg(place.join("data")).arg(place.join("mnt")),
        };
        server.args(["--json", "--cache", "128MiB"]);
        server.arg("--control").arg(place.join("control.sock")).arg("--state").arg(place.join("state"));
        server.stdin(Stdio::null()).stdout(File::create(&ready)?).stderr(File::create(place.join("server.log"))?);
        let server = server.spawn().context("afflux")?;
        let line =
            eventually("the server starts", || fs::read_to_string(&ready).ok().filter(|line| line.ends_with('\n')))?;
        let mut mounted = Self { place: place.to_path_buf(), way, server, bridge: None };
        if way == Way::Fuse {
            // It says so once the mount is there.
            return Ok(mounted);
        }
        let told: serde_json::Value = serde_json::from_str(&line).context("what the server says")?;
        let port = told["port"].as_u64().context("no port")?;
        let export = told["serving"][0]["export"].as_str().context("no export")?;
        let mut command = Command::new(bridge);
        command.arg(format!("127.0.0.1:{port}")).arg(export).arg(place.join("mnt"));
        let bridge = command.stderr(File::create(place.join("bridge.log"))?).spawn().context("fuse-bridge")?;
        mounted.bridge = Some(bridge);
        eventually("the mount is there", || {
            let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
            mounts.contains(&format!("nfs-bridge {}", place.join("mnt").display())).then_some(())
        })?;
        Ok(mounted)
    }

    fn runs(&self, program: &Program) -> Result<bool> {
        let (here, beside) = (self.place.join("mnt").join(program.name), self.place.join("beside").join(program.name));
        for folder in [&here, &beside] {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        }
        let script = format!("set -e; {}", program.script);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(here).arg(beside).arg(self.way.word());
        let status = shell.status().context("sh")?;
        Ok(status.success())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.place.join("mnt")).status();
        for child in self.bridge.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(found) = found() {
            return Ok(found);
        }
        sleep(Duration::from_millis(50));
    }
    bail!("never: {what}")
}
