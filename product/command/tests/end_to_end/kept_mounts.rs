//! A mount that outlives killed servers (`--arena systemd`). The test is the service manager.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, OFlags, RenameFlags, fcntl_lock, linkat, renameat_with};
use rustix::process::Signal;

use crate::mounted::{apart, can_mount, is_mounted};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, eventually};
use crate::systemd::Systemd;

const RESERVE: [&str; 2] = ["--arena", "systemd"];

/// A directory, its mount, and the manager. Nothing stays mounted at its end.
struct Bench {
    server: Option<Server>,
    manager: Systemd,
    data: PathBuf,
    point: PathBuf,
    scratch: Scratch,
}

impl Bench {
    fn new(is_over_itself: bool) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let scratch = Scratch::new();
        let (data, point) = apart(&scratch);
        let point = if is_over_itself { data.clone() } else { point };
        let manager = Systemd::new(scratch.path());
        let mut bench = Self { server: None, manager, data, point, scratch };
        bench.start();
        Some(bench)
    }

    fn start(&mut self) {
        self.server = Some(self.manager.mount(&self.data, &self.point, &RESERVE));
    }

    fn kill(&mut self) {
        let server = self.server.take().unwrap();
        server.signal(Signal::KILL);
        assert_eq!(server.wait().signal, Some(9));
    }

    /// A kill, and the next server.
    fn replace(&mut self) {
        self.kill();
        self.start();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// READ calls of the server that runs.
    fn reads(&self) -> u64 {
        self.server.as_ref().unwrap().stat()["nfs"]["calls"]["fuse_read"].as_u64().unwrap()
    }

    /// Waits until so many mounts are in the store.
    fn has(&self, mounts: usize) {
        eventually("the store has the mount", || {
            (self.manager.stored("mount").len(), self.manager.stored("mount-memory").len()) == (mounts, mounts)
        });
    }

    /// Waits until so many open files without a name are in the store.
    fn has_unnamed(&self, files: usize) {
        eventually("the store has the files without a name", || self.manager.unnamed() == files);
    }

    fn stop(&mut self) {
        self.server.take().unwrap().stop();
        assert!(!is_mounted(&self.point), "it is still mounted");
        self.has(0);
        self.has_unnamed(0);
        self.manager.has(0, 0);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(self.server.take());
        // Programs that wait get errors once nobody has the device.
        self.manager.clear();
        while is_mounted(&self.point) {
            let _ = Command::new("umount").arg("-l").arg(&self.point).output();
        }
    }
}

/// A program that uses the mount until it is ordered to end. It is a process of its own. Otherwise the child that
/// becomes the next server would have to close files of the mount first, and would wait for itself.
struct Program {
    child: Child,
    control: PathBuf,
}

/// The variables that make the test [`program`] a program.
const KIND: &str = "KEPT_PROGRAM";
const CONTROL: &str = "KEPT_CONTROL";
const AT: &str = "KEPT_AT";

impl Program {
    fn start(kind: &str, bench: &Bench, at: &Path) -> Self {
        let control = bench.scratch.directory(kind);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "kept_mounts::program", "--nocapture"]);
        command.env(KIND, kind).env(CONTROL, &control).env(AT, at);
        Self { child: command.spawn().unwrap(), control }
    }

    fn calls(&self) -> u64 {
        fs::read_to_string(self.control.join("calls")).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Waits until the program has made more calls, or has failed.
    fn goes_on(&mut self, calls: u64) {
        let wanted = self.calls() + calls;
        eventually("the program goes on", || self.calls() >= wanted || self.child.try_wait().unwrap().is_some());
    }

    /// Ends it. Returns its rounds.
    fn end(mut self) -> u64 {
        fs::write(self.control.join("end"), "").unwrap();
        assert!(self.child.wait().unwrap().success(), "the program saw an error");
        fs::read_to_string(self.control.join("rounds")).unwrap().parse().unwrap()
    }
}

/// No test: the process of a [`Program`]. Its calls panic at errors and at wrong bytes.
#[test]
fn program() {
    let value = |name| std::env::var(name).map(PathBuf::from);
    let (Ok(kind), Ok(control), Ok(at)) = (std::env::var(KIND), value(CONTROL), value(AT)) else { return };
    if kind == "begins" {
        begin_another(&control, &at);
    }
    let (mut rounds, mut calls, mut longest, mut since) = (0, 0_u64, Duration::ZERO, Instant::now());
    let mut log = (kind == "appends").then(|| OpenOptions::new().append(true).create(true).open(&at).unwrap());
    while !control.join("end").exists() {
        let mut called = || {
            longest = longest.max(since.elapsed());
            calls += 1;
            fs::write(control.join("new"), calls.to_string()).unwrap();
            fs::rename(control.join("new"), control.join("calls")).unwrap();
            since = Instant::now();
        };
        match &mut log {
            None => names_and_bytes(&at, rounds, &mut called),
            Some(log) => {
                log.write_all(format!("{rounds:08}\n").as_bytes()).unwrap();
                called();
            }
        }
        rounds += 1;
    }
    println!("{kind}: {rounds} rounds, {calls} calls, the longest took {} ms", longest.as_millis());
    fs::write(control.join("rounds"), rounds.to_string()).unwrap();
}

/// Becomes another program once it is ordered to end, with a file open until then.
fn begin_another(control: &Path, at: &Path) {
    // The kernel closes files in their order at execve, so the lock ends just before the wait for the mount begins. It
    // is a lock of POSIX: the kernel ends one of flock only once execve has returned.
    let lock = File::create(control.join("lock")).unwrap();
    fcntl_lock(&lock, FlockOperation::LockExclusive).unwrap();
    let _open = OpenOptions::new().write(true).open(at).unwrap();
    fs::write(control.join("calls"), "1").unwrap();
    eventually("the program is to begin", || control.join("end").exists());
    panic!("{}", Command::new("true").exec());
}

/// A shell that holds files of the mount open. It carries out lines.
struct Shell(Child);

impl Shell {
    fn start(at: &Path) -> Self {
        let mut command = Command::new("sh");
        Self(
            command
                .current_dir(at)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Carries out a line, and waits for its end. Returns what it printed.
    fn run(&mut self, line: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "({line}) 2>&1; echo; echo done").unwrap();
        self.said()
    }

    /// Opens files for the shell's later lines.
    fn hold(&mut self, line: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}; echo done").unwrap();
        self.said();
    }

    fn said(&mut self) -> String {
        let (mut said, mut byte) = (String::new(), [0]);
        while !said.ends_with("done\n") {
            assert_eq!(self.0.stdout.as_mut().unwrap().read(&mut byte).unwrap(), 1, "{said}");
            said.push(char::from(byte[0]));
        }
        said
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bytes_of(round: u64) -> Vec<u8> {
    Bytes::new(round).vec(1 + (round as usize * 7919) % 60_000)
}

/// The outcome of a change of names that no other program makes. A kill between the host's call and its note leaves a
/// change that is done, and the program hears so.
fn done(changed: io::Result<()>, known: ErrorKind) {
    assert!(changed.as_ref().is_ok() || changed.as_ref().is_err_and(|error| error.kind() == known), "{changed:?}");
}

/// One round of changes of names, writes and reads below a directory. All names of it stay there.
fn names_and_bytes(below: &Path, round: u64, called: &mut dyn FnMut()) {
    let path = |name: &str| below.join(format!("{name}{round}"));
    let mut file = OpenOptions::new();
    file.read(true).write(true);
    let mut made = match file.clone().create_new(true).open(path("made")) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => file.open(path("made")).unwrap(),
        made => made.unwrap(),
    };
    called();
    let bytes = bytes_of(round);
    made.write_all(&bytes).unwrap();
    called();
    done(fs::create_dir(path("directory")), ErrorKind::AlreadyExists);
    called();
    done(symlink("target", path("link")), ErrorKind::AlreadyExists);
    called();
    done(fs::hard_link(path("made"), path("second")), ErrorKind::AlreadyExists);
    called();
    done(fs::rename(path("made"), path("directory").join("moved")), ErrorKind::NotFound);
    called();
    fs::write(path("other"), b"other").unwrap();
    called();
    let exchanged = renameat_with(CWD, path("other"), CWD, path("second"), RenameFlags::EXCHANGE);
    done(exchanged.map_err(Into::into), ErrorKind::AlreadyExists);
    called();
    assert_eq!(fs::read(path("second")).unwrap(), b"other", "they were exchanged once");
    called();
    assert!(fs::read(path("other")).unwrap() == bytes);
    called();
    let mut read = vec![0; bytes.len()];
    made.read_exact_at(&mut read, 0).unwrap();
    assert!(read == bytes && made.metadata().unwrap().nlink() == 2);
    called();
    done(fs::remove_file(path("second")), ErrorKind::NotFound);
    called();
    done(fs::create_dir(path("gone")), ErrorKind::AlreadyExists);
    called();
    done(fs::remove_dir(path("gone")), ErrorKind::NotFound);
    called();
    without_a_name(below, &path("unnamed"), &bytes, called);
    if round.is_multiple_of(4) {
        made.sync_all().unwrap();
        called();
    }
    assert_eq!(fs::read_link(path("link")).unwrap(), Path::new("target"));
    assert!(!path("gone").exists() && !path("made").exists());
    called();
}

/// Makes a file without a name, names it, and removes the name while the file is open.
fn without_a_name(below: &Path, name: &Path, bytes: &[u8], called: &mut dyn FnMut()) {
    let unnamed = OFlags::TMPFILE.bits() as i32;
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(unnamed).open(below).unwrap();
    called();
    file.write_all(bytes).unwrap();
    called();
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    done(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(Into::into), ErrorKind::AlreadyExists);
    called();
    assert!(fs::read(name).unwrap() == bytes);
    called();
    done(fs::remove_file(name), ErrorKind::NotFound);
    called();
    file.write_all(b"end").unwrap();
    called();
    let mut read = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut read).unwrap();
    assert!(read == [bytes, b"end"].concat() && file.metadata().unwrap().nlink() == 0);
    called();
}

/// Checks the names and bytes after rounds of [`names_and_bytes`].
fn check(below: &Path, rounds: u64) {
    assert_eq!(fs::read_dir(below).unwrap().count() as u64, rounds * 3);
    for round in 0..rounds {
        let path = |name: &str| below.join(format!("{name}{round}"));
        let bytes = bytes_of(round);
        assert!(fs::read(path("other")).unwrap() == bytes, "round {round}");
        assert!(fs::read(path("directory").join("moved")).unwrap() == bytes, "round {round}");
        assert_eq!(fs::metadata(path("other")).unwrap().nlink(), 2);
    }
}

/// Kills servers under a program of names and bytes, and one of appends.
fn kills_under_programs(is_over_itself: bool) {
    const KILLS: usize = 10;
    let Some(mut bench) = Bench::new(is_over_itself) else { return };
    fs::create_dir(bench.path("names")).unwrap();
    let mut names = Program::start("names", &bench, &bench.path("names"));
    let mut appends = Program::start("appends", &bench, &bench.path("log"));
    names.goes_on(1);
    appends.goes_on(1);
    for kill in 0..KILLS as u64 {
        names.goes_on(10 + kill * 3 % 17);
        appends.goes_on(1);
        bench.replace();
    }
    names.goes_on(20);
    let (rounds, lines) = (names.end(), appends.end());
    let removals = bench.manager.removals();
    assert!(removals.iter().all(|name| name.starts_with("unnamed-")), "{}", bench.manager.log());
    check(&bench.path("names"), rounds);
    let (data, log) = (bench.data.clone(), fs::read_to_string(bench.path("log")).unwrap());
    bench.stop();
    check(&data.join("names"), rounds);
    assert_eq!(log, fs::read_to_string(data.join("log")).unwrap());
    let wanted: String = (0..lines).map(|round| format!("{round:08}\n")).collect();
    assert!(log == wanted, "each line once, and in order");
}

// rule: with `--arena systemd` programs on a mount see no wrong byte when its server is killed, and no error but that a
// change of names is done already kept in:
// `product/fuse/src/mount_state.rs`, `product/volume/src/names/repeated.rs`,
// `product/linux-server/src/fuse/persisted_mount.rs`,
// `product/command/src/serve/persisted/persisted_mount.rs`
#[test]
fn programs_go_on_while_servers_are_killed() {
    kills_under_programs(false);
}

#[test]
fn programs_go_on_at_a_mount_over_the_directory_itself() {
    kills_under_programs(true);
}

#[test]
fn fio_verifies_over_kills() {
    // For more kills: KEPT_KILLS=200 cargo test -p afflux-command --test end_to_end fio_verifies -- --nocapture
    let wanted = std::env::var("KEPT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let Some(mut bench) = Bench::new(false) else { return };
    let report = bench.scratch.path().join("report");
    let mut fio = Command::new("fio");
    fio.args(["--name=kills", "--rw=randrw", "--bsrange=4k-64k", "--size=24m", "--ioengine=psync", "--verify=crc32c"]);
    fio.args(["--do_verify=1", "--verify_fatal=1", "--fsync=64", "--numjobs=2", "--directory"]);
    let loops = format!("--loops={}", 1 + wanted / 50);
    let spawned =
        fio.arg(&bench.point).arg(loops).arg("--output").arg(&report).current_dir(bench.scratch.path()).spawn();
    let Ok(mut fio) = spawned else { return afflux_scratch::skipped!("fio is not installed") };
    let mut kills = 0;
    while kills < wanted && fio.try_wait().unwrap().is_none() {
        // Each server serves some calls. Reads come after fio has laid out its files.
        eventually("fio reads, or has ended", || bench.reads() >= 10 || fio.try_wait().unwrap().is_some());
        bench.replace();
        kills += 1;
    }
    let ended = fio.wait().unwrap();
    assert!(ended.success(), "after {kills} kills");
    let report = fs::read_to_string(report).unwrap();
    let longest = report.lines().filter(|line| line.contains("clat") && line.contains("max="));
    println!("{kills} kills; {}", longest.map(str::trim).collect::<Vec<_>>().join("; "));
    bench.stop();
}

#[test]
fn a_mount_beside_nfs_outlives_its_server_too() {
    if !can_mount() {
        return;
    }
    let Some(mut bench) = Bench::new(false) else { return };
    bench.server.take().unwrap().stop();
    let point = bench.point.to_str().unwrap().to_owned();
    let more = [&RESERVE[..], &["--mount", &point]].concat();
    bench.server = Some(bench.manager.start(&bench.data, &more));
    fs::write(bench.path("file"), "by the mount").unwrap();
    bench.has(1);
    bench.manager.has(1, 1);
    bench.kill();
    let waits = bench.path("file");
    let reads = thread::spawn(move || fs::read_to_string(waits).unwrap());
    bench.server = Some(bench.manager.start(&bench.data, &more));
    assert_eq!(reads.join().unwrap(), "by the mount");
    let mut client = crate::client::Client::mount(bench.server.as_ref().unwrap());
    let root = client.root();
    assert!(client.read_file(&root, "file") == b"by the mount");
    bench.stop();
}

// rule: with `--arena systemd` an open file without a name goes on over kills, with its unwritten bytes kept in:
// `product/linux-server/src/host/stored_unnamed.rs`, `product/volume/src/handles/hold.rs`,
// `product/command/src/serve/persisted/unnamed_files.rs`
#[test]
fn an_open_file_without_a_name_goes_on() {
    let Some(mut bench) = Bench::new(false) else { return };
    let mut shell = Shell::start(&bench.point);
    shell.hold("exec 3<>removed 4<removed 5<>replaced 6<replaced; echo first >&3; echo first >&5");
    assert_eq!(shell.run("rm removed; echo new >new; mv new replaced"), "\ndone\n");
    for round in ["second", "third"] {
        bench.has_unnamed(2);
        bench.replace();
        for file in [3, 5] {
            assert_eq!(shell.run(&format!("echo {round} >&{file}")), "\ndone\n", "{}", bench.manager.log());
        }
    }
    bench.replace();
    for file in [4, 6] {
        assert_eq!(shell.run(&format!("cat <&{file}")), "first\nsecond\nthird\n\ndone\n");
    }
    assert!(!bench.manager.log().contains("without a name"), "{}", bench.manager.log());
    shell.hold("exec 3>&- 4<&-");
    bench.has_unnamed(1);
    assert_eq!(fs::read_to_string(bench.path("replaced")).unwrap(), "new\n");
    bench.stop();
}

// rule: with `--arena systemd` an open directory without a name gives the host's answers over kills
// kept in: `product/linux-server/src/host/stored_unnamed.rs`, `product/volume/src/handles/hold.rs`
#[test]
fn an_open_directory_without_a_name_answers_as_the_hosts() {
    let Some(mut bench) = Bench::new(false) else { return };
    fs::create_dir(bench.path("host")).unwrap();
    let begun = |at: &Path| {
        let mut shell = Shell::start(at);
        shell.hold(
            "export LC_ALL=C; mkdir removed replaced new; exec 3<removed 4<replaced; rmdir removed; mv -T new replaced",
        );
        shell
    };
    let mut host = begun(&bench.data.join("host"));
    let mut shell = begun(&bench.point);
    for mode in [711, 750, 705] {
        for directory in [3, 4] {
            let at = format!("/dev/fd/{directory}");
            // The kernel passes each change to the server. It may answer other calls from its own memory.
            for line in [
                format!("chmod {mode} {at} && stat -L -c '%a %h %F' {at}"),
                format!("sync {at} && ls -a {at}/"),
                format!("mkdir {at}/below; echo new >{at}/new"),
                format!("cat {at}/absent"),
            ] {
                let told = shell.run(&line);
                assert_eq!(told, host.run(&line), "{line}: {}", bench.manager.log());
            }
        }
        bench.has_unnamed(2);
        bench.replace();
    }
    assert!(!bench.manager.log().contains("without a name"), "{}", bench.manager.log());
    shell.hold("exec 3<&-");
    bench.has_unnamed(1);
    assert!(bench.path("replaced").exists());
    drop(host);
    bench.stop();
}

#[test]
fn a_bounded_number_of_open_files_without_a_name_is_kept() {
    const MOST: usize = 64;
    let Some(mut bench) = Bench::new(false) else { return };
    let mut shells = Vec::new();
    for number in 0..10 {
        let mut shell = Shell::start(&bench.point);
        let files: Vec<String> = (3..10).map(|file| format!("{file}<>{number}-{file}")).collect();
        shell.hold(&format!("exec {}; rm {number}-*", files.join(" ")));
        shells.push(shell);
    }
    bench.has_unnamed(MOST);
    assert_eq!(bench.manager.log().matches("are kept over a kill").count(), 1, "{}", bench.manager.log());
    drop(shells);
    bench.has_unnamed(0);
    bench.stop();
}

// rule: an open file without a name that nobody stored ends with a killed server: its calls fail with ESTALE, and the
// log counts it kept in: `product/fuse/src/mount.rs`
#[test]
fn an_open_file_without_a_name_that_nobody_kept_is_lost_and_counted() {
    let Some(mut bench) = Bench::new(false) else { return };
    let mut shell = Shell::start(&bench.point);
    shell.hold("exec 3>kept 4<>lost; echo bytes >&4; rm lost");
    bench.has_unnamed(1);
    bench.kill();
    bench.manager.drop_unnamed();
    bench.start();
    assert_eq!(shell.run("echo bytes >&3"), "\ndone\n");
    let said = shell.run("LC_ALL=C cat <&4");
    assert!(said.contains("Stale"), "{said}");
    assert!(bench.manager.log().contains("1 open files without a name ended"), "{}", bench.manager.log());
    drop(shell);
    assert_eq!(fs::read(bench.path("kept")).unwrap(), b"bytes\n");
    bench.stop();
}

// rule: descriptors in the store that are not of the file in their name, or of no open file, leave the store
// kept in: `product/linux-server/src/host/stored_unnamed.rs`
#[test]
fn descriptors_of_no_open_file_leave_the_store() {
    let Some(mut bench) = Bench::new(false) else { return };
    let mut shell = Shell::start(&bench.point);
    shell.hold("exec 3<>open; rm open");
    bench.has_unnamed(1);
    fs::write(bench.data.join("other"), "other").unwrap();
    bench.kill();
    let real = bench.manager.first_unnamed();
    bench.manager.put("unnamed-1-1-1-00", File::open(bench.data.join("other")).unwrap());
    bench.start();
    bench.has_unnamed(1);
    assert_eq!(bench.manager.first_unnamed(), real);
    assert!(bench.manager.log().contains("1 descriptors in systemd's store"), "{}", bench.manager.log());
    // The server was killed before the manager was notified of the file's end.
    let name = real.unwrap();
    let descriptor = bench.manager.stored(&name).remove(0);
    drop(shell);
    bench.has_unnamed(0);
    bench.kill();
    bench.manager.put(&name, descriptor);
    bench.start();
    bench.has_unnamed(0);
    bench.stop();
}

// rule: a mount in the store that the settings do not name any more is unmounted, and its descriptors are dropped
// kept in: `product/command/src/serve/persisted/persisted_mount.rs`
#[test]
fn a_server_without_the_mount_ends_it() {
    let Some(mut bench) = Bench::new(false) else { return };
    let mut shell = Shell::start(&bench.point);
    shell.hold("exec 3<>open");
    bench.has(1);
    bench.kill();
    let server = bench.manager.start(&bench.data, &RESERVE);
    assert!(!is_mounted(&bench.point));
    bench.has(0);
    let said = shell.run("LC_ALL=C cat <&3");
    assert!(said.contains("connect"), "{said}");
    assert!(bench.manager.log().contains("these settings have no such mount"), "{}", bench.manager.log());
    server.stop();
}

#[test]
fn a_start_that_fails_leaves_the_mount() {
    let Some(mut bench) = Bench::new(false) else { return };
    fs::write(bench.path("file"), "bytes").unwrap();
    bench.has(1);
    bench.kill();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    let removals = bench.manager.removals().len();
    bench.manager.mount_refused(&bench.data, &bench.point, &[&RESERVE[..], &["--metrics", &metrics]].concat());
    assert!(bench.manager.log().contains(&metrics), "{}", bench.manager.log());
    assert_eq!((bench.manager.removals().len(), is_mounted(&bench.point)), (removals, true));
    bench.start();
    assert_eq!(fs::read_to_string(bench.path("file")).unwrap(), "bytes");
    bench.stop();
}

// rule: a start that looks for the owner of a port does not wait for a program in execve, which may wait for the
// server kept in: `product/command/src/processes.rs`
#[test]
fn a_start_that_fails_waits_for_no_program_that_begins() {
    let Some(mut bench) = Bench::new(false) else { return };
    fs::write(bench.path("open"), "bytes").unwrap();
    let mut program = Program::start("begins", &bench, &bench.path("open"));
    program.goes_on(1);
    bench.has(1);
    bench.kill();
    // The kernel closes the program's file at execve, which waits for the next server.
    fs::write(program.control.join("end"), "").unwrap();
    let lock = File::open(program.control.join("lock")).unwrap();
    eventually("the program is in execve", || fcntl_lock(&lock, FlockOperation::NonBlockingLockShared).is_ok());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap().to_string();
    // A search goes by numbers of processes, so it comes to the program first.
    let mut holder = Command::new("sleep").arg("1000").stdin(OwnedFd::from(taken)).spawn().unwrap();
    bench.manager.mount_refused(&bench.data, &bench.point, &[&RESERVE[..], &["--metrics", &metrics]].concat());
    assert!(bench.manager.log().contains(&metrics), "{}", bench.manager.log());
    holder.kill().unwrap();
    holder.wait().unwrap();
    bench.start();
    assert!(program.child.wait().unwrap().success());
    bench.stop();
}

#[test]
fn a_second_server_changes_nothing_and_a_frozen_one_is_followed() {
    let Some(mut bench) = Bench::new(true) else { return };
    bench.has(1);
    bench.manager.mount_refused(&bench.data, &bench.point, &RESERVE);
    let first = bench.server.take().unwrap();
    assert!(bench.manager.log().contains(&format!("process {} uses it", first.process())), "{}", bench.manager.log());
    fs::write(bench.path("file"), "by the first").unwrap();
    first.freeze();
    bench.start();
    assert_eq!(first.wait().signal, Some(Signal::KILL.as_raw()));
    assert_eq!(fs::read_to_string(bench.path("file")).unwrap(), "by the first");
    bench.stop();
}

/// Damages the memory of the mount at an offset.
fn damage(memory: &OwnedFd, at: u64) {
    let file = File::from(memory.try_clone().unwrap());
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
}

/// dd with a file of the mount open. It syncs the file at the end of its input.
fn writer(path: &Path) -> Child {
    let mut dd = Command::new("dd");
    dd.args(["bs=5", "conv=fsync,notrunc", "status=none"]).arg(format!("of={}", path.display())).env("LC_ALL", "C");
    dd.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

// rule: if a killed server's memory was damaged, the next sync of a file that was open at the kill fails with EIO
// kept in: `product/fuse/src/mount.rs`
#[test]
fn pages_put_aside_fail_the_next_sync_of_an_open_file() {
    let Some(mut bench) = Bench::new(false) else { return };
    let path = bench.path("file");
    let mut dd = writer(&path);
    eventually("dd has opened the file", || path.exists());
    dd.stdin.as_mut().unwrap().write_all(b"bytes").unwrap();
    eventually("dd has written", || fs::metadata(&path).unwrap().len() == 5);
    bench.kill();
    // The record of the last frame: after the header's and the slots' parts of 2 MiB and 8 MiB.
    let at = (10 << 20) + ((64 << 20) / 4096 - 1) * 32;
    File::from(bench.manager.stored("arena").remove(0)).write_all_at(&[0xff; 32], at).unwrap();
    bench.start();
    let ended = dd.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && said.contains("fsync") && said.contains("Input/output error"), "{said}");
    assert!(bench.manager.log().contains("in a state that no kill leaves"), "{}", bench.manager.log());
    assert!(writer(&path).wait_with_output().unwrap().status.success(), "a file that is opened later has lost nothing");
    assert_eq!(fs::read(&path).unwrap(), b"bytes");
    bench.stop();
}

// rule: a mount whose inherited memory is damaged is given up with one line, and mounted anew kept in:
// `product/fuse/src/mount_state.rs`, `product/linux-server/src/fuse/mount_memory.rs`,
// `product/command/src/serve/persisted/persisted_mount.rs`
#[test]
fn a_mount_with_damaged_memory_is_mounted_anew() {
    const MACHINE_AT: u64 = 8192;
    let Some(mut bench) = Bench::new(true) else { return };
    fs::write(bench.path("file"), "bytes").unwrap();
    // Only synced bytes outlive the cache's memory.
    File::open(bench.path("file")).unwrap().sync_all().unwrap();
    // The location, the machine's form, the agreement of INIT; last the cache's memory is gone.
    for at in [Some(8), Some(MACHINE_AT + 3), Some(MACHINE_AT + 8 * 8), None] {
        bench.has(1);
        bench.kill();
        match at {
            Some(at) => damage(&bench.manager.stored("mount-memory")[0], at),
            None => bench.manager.put("arena", File::open("/dev/null").unwrap()),
        }
        let said = bench.manager.log().len();
        bench.start();
        let log = bench.manager.log()[said..].to_owned();
        assert_eq!(log.lines().filter(|line| line.contains("is given up")).count(), 1, "{log}");
        assert_eq!(fs::read_to_string(bench.path("file")).unwrap(), "bytes");
        assert!(is_mounted(&bench.point));
    }
    bench.stop();
}

#[test]
fn a_mount_whose_server_died_before_the_store_had_it_is_mounted_anew() {
    let Some(mut bench) = Bench::new(false) else { return };
    bench.has(1);
    bench.kill();
    bench.manager.clear();
    assert!(is_mounted(&bench.point) && fs::metadata(&bench.point).is_err());
    bench.start();
    fs::write(bench.path("file"), "bytes").unwrap();
    bench.stop();
}
