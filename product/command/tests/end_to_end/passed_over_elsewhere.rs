//! The bytes of a killed server, after another server has served the files with a state directory of its own: under any
//! path, as a part or from above, by any command.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arenas::Place;
use crate::client::{Client, Handle};
use crate::mounted::{Mounted, can_mount};
use crate::scratch::{Bytes, Mount};
use crate::server::{LAZY, Server, afflux};

/// The arena's server has `disk`, or `inner` in it, which has the file `f`.
struct Two {
    place: Place,
    disk: PathBuf,
}

/// The directory and the name of a file below the root of an export.
fn way<'a>(client: &mut Client, path: &'a str) -> (Handle, &'a str) {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut directory = client.root();
    for name in directories.split('/').filter(|name| !name.is_empty()) {
        directory = client.lookup(&directory, name);
    }
    (directory, name)
}

impl Two {
    fn new() -> Option<Self> {
        let place = Place::new()?;
        let disk = place.scratch.directory("disk");
        fs::create_dir(disk.join("inner")).unwrap();
        Some(Self { place, disk })
    }

    fn of_disk() -> Option<Self> {
        let Self { place, disk } = Self::new()?;
        Some(Self { place: Place { data: disk.clone(), ..place }, disk })
    }

    fn of_inner() -> Option<Self> {
        let Self { place, disk } = Self::new()?;
        Some(Self { place: Place { data: disk.join("inner"), ..place }, disk })
    }

    /// Its server is killed with bytes of the file in its memory.
    fn killed(&self) {
        let server = self.place.start_with(&LAZY);
        let mut client = Client::mount(&server);
        let path = if self.place.data == self.disk { "inner/f" } else { "f" };
        let (directory, name) = way(&mut client, path);
        client.write_file_uncommitted(&directory, name, &Bytes::new(21).vec(100_000));
        server.kill();
    }

    fn state(&self) -> PathBuf {
        self.place.scratch.path().join("afflux")
    }

    fn other_state(&self) -> [String; 2] {
        let other = self.place.scratch.directory("other state");
        ["--state".to_owned(), other.to_str().unwrap().to_owned()]
    }

    /// A server of a directory, with another state directory, takes other bytes for the file at `path`.
    fn served(&self, directory: &Path, path: &str, more: &[&str]) -> Server {
        let state = self.other_state();
        let more: Vec<&str> = state.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let server = Server::start(self.place.scratch.path(), &[directory], &more);
        let mut client = Client::mount(&server);
        let (directory, name) = way(&mut client, path);
        client.write_file(&directory, name, &committed());
        server
    }

    fn on_disk(&self) -> Vec<u8> {
        fs::read(self.disk.join("inner/f")).unwrap()
    }

    /// A start is refused with the reason, the files and the command that helps. The command works.
    fn must_refuse(&self, why: &str) {
        assert!(self.on_disk() == committed());
        let said = self.place.refused(&[]);
        let arena = self.place.arena().display().to_string();
        for words in [why, &self.disk.join("inner/f").display().to_string(), &format!("rm {arena}")] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(self.on_disk() == committed());
        fs::remove_file(self.place.arena()).unwrap();
        self.place.start().stop();
        assert!(self.on_disk() == committed());
    }
}

fn committed() -> Vec<u8> {
    Bytes::new(22).vec(100_000)
}

fn write_durably(path: &Path) {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all(&committed()).unwrap();
    file.sync_all().unwrap();
}

/// A copy with all attributes, as a backup has it.
pub(crate) fn copy_state(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

const SERVED: &str = "another server has served ";

// rule: bytes of a killed server are written home only if no server of this host has served their directory since
// kept in: `product/command/src/serve/persisted/last_run.rs`, `product/command/src/serve/persisted/arena.rs`
#[test]
fn memory_is_refused_after_a_server_with_another_state_directory() {
    for is_killed in [false, true] {
        for with_memory in [false, true] {
            let Some(two) = Two::of_disk() else { return };
            two.killed();
            let other = two.place.arena().with_file_name("other");
            let more = ["--arena", other.to_str().unwrap()];
            let server = two.served(&two.disk, "inner/f", if with_memory { &more[..] } else { &[] });
            match is_killed {
                true => server.kill(),
                false => drop(server.stop()),
            }
            two.must_refuse(&format!("{SERVED}{} since", two.disk.display()));
        }
    }
}

#[test]
fn memory_is_refused_after_a_server_of_a_directory_above_or_below() {
    let Some(two) = Two::of_disk() else { return };
    two.killed();
    two.served(&two.disk.join("inner"), "f", &[]).kill();
    two.must_refuse(SERVED);
    let Some(two) = Two::of_inner() else { return };
    two.killed();
    two.served(&two.disk, "inner/f", &[]).kill();
    two.must_refuse(SERVED);
}

#[test]
fn memory_is_refused_after_a_server_of_another_path_to_the_same_place() {
    type Way = fn(&Two) -> Option<(PathBuf, &'static str, Option<Mount>)>;
    let link: Way = |two| {
        let link = two.place.scratch.path().join("link");
        symlink(&two.disk, &link).unwrap();
        Some((link, "inner/f", None))
    };
    let bound: Way = |two| {
        let point = two.place.scratch.directory("bound");
        let mount = Mount::bind(&two.disk, &point)?;
        Some((point, "inner/f", Some(mount)))
    };
    let inner_bound: Way = |two| {
        let point = two.place.scratch.directory("bound");
        let mount = Mount::bind(&two.disk.join("inner"), &point)?;
        Some((point, "f", Some(mount)))
    };
    let bound_below: Way = |two| {
        let above = two.place.scratch.directory("above");
        let mount = Mount::bind(&two.disk, &two.place.scratch.directory("above/bound"))?;
        Some((above, "bound/inner/f", Some(mount)))
    };
    for of in [Two::of_disk, Two::of_inner] {
        for way in [link, bound, inner_bound, bound_below] {
            let Some(two) = of() else { return };
            two.killed();
            let Some((path, file, mount)) = way(&two) else { return };
            two.served(&path, file, &[]).stop();
            drop(mount);
            two.must_refuse(SERVED);
        }
    }
}

/// The inner directory is a disk of its own.
#[test]
fn memory_is_refused_after_a_server_above_or_below_on_another_file_system() {
    for of in [Two::of_disk, Two::of_inner] {
        let Some(two) = of() else { return };
        let inner = two.disk.join("inner");
        let Some(_mount) = Mount::ext4(&two.place.scratch.path().join("image"), &inner, 64 << 20) else { return };
        two.killed();
        match two.place.data == two.disk {
            true => two.served(&inner, "f", &[]).stop(),
            false => two.served(&two.disk, "inner/f", &[]).stop(),
        };
        two.must_refuse(SERVED);
    }
}

#[test]
fn memory_is_refused_after_a_mount_in_between() {
    if !can_mount() {
        return;
    }
    let Some(two) = Two::of_disk() else { return };
    two.killed();
    let state = two.other_state();
    let flags = [state[0].as_str(), state[1].as_str()];
    let point = two.place.scratch.directory("point");
    let mounted = Mounted::start_with(two.place.scratch.path(), &two.disk.join("inner"), &point, &flags);
    write_durably(&mounted.path("f"));
    mounted.stop();
    two.must_refuse(SERVED);
    let Some(two) = Two::of_inner() else { return };
    two.killed();
    let point = two.place.scratch.directory("point");
    let served = two.served(&two.disk, "inner/f", &["--mount", point.to_str().unwrap()]);
    write_durably(&point.join("inner/f"));
    served.stop();
    two.must_refuse(SERVED);
}

#[test]
fn memory_is_refused_after_a_server_with_a_copy_of_the_state_directory() {
    let Some(two) = Two::of_disk() else { return };
    two.killed();
    copy_state(&two.state(), &two.place.scratch.path().join("other state"));
    two.served(&two.disk, "inner/f", &[]).kill();
    two.must_refuse(SERVED);
    // The state directory of before comes back from a backup. The record of starts is at another path.
    let Some(two) = Two::of_disk() else { return };
    let state = two.other_state();
    let (state, backup) = (PathBuf::from(&state[1]), two.place.scratch.path().join("backup"));
    let named = ["--state", state.to_str().unwrap()];
    let server = two.place.start_with(&[&LAZY[..], &named].concat());
    let mut client = Client::mount(&server);
    let (directory, name) = way(&mut client, "inner/f");
    client.write_file_uncommitted(&directory, name, &Bytes::new(21).vec(100_000));
    server.kill();
    copy_state(&state, &backup);
    two.served(&two.disk, "inner/f", &[]).stop();
    fs::remove_dir_all(&state).unwrap();
    copy_state(&backup, &state);
    let said = two.place.refused(&named);
    assert!(said.contains(SERVED) && two.on_disk() == committed(), "{said}");
}

#[test]
fn memory_is_taken_after_a_server_of_a_directory_beside() {
    let Some(two) = Two::of_inner() else { return };
    two.killed();
    let beside = two.disk.join("inner2");
    fs::create_dir(&beside).unwrap();
    two.served(&beside, "f", &[]).stop();
    two.place.start().stop();
    assert!(two.on_disk() == Bytes::new(21).vec(100_000));
}

#[test]
fn memory_is_refused_if_the_record_of_starts_is_lost() {
    let Some(two) = Two::of_disk() else { return };
    two.killed();
    let record = two.state().join("starts");
    let text = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let said = two.place.refused(&[]);
    assert!(said.contains("is unknown: the record of starts does not have that one"), "{said}");
    fs::write(&record, "nonsense").unwrap();
    let said = two.place.refused(&[]);
    assert!(said.contains("is unknown (the record of starts: ") && said.contains("starts: it is of another"), "{said}");
    fs::write(&record, &text).unwrap();
    two.place.start().stop();
    assert!(two.on_disk() == Bytes::new(21).vec(100_000));
}

/// A host whose system becomes read-only. The state is on a disk of its own, as an appliance has it.
struct Appliance {
    two: Two,
    system: PathBuf,
    mount: Mount,
}

impl Appliance {
    fn try_new() -> Option<Self> {
        let two = Two::of_disk()?;
        let system = two.place.scratch.directory("system");
        let mount = Mount::tmpfs(&system, 1 << 20)?;
        Some(Self { two, system, mount })
    }

    fn command(&self, served: &Path, more: &[&str]) -> Command {
        let home = self.two.place.scratch.path();
        let state = self.two.place.scratch.directory("own state");
        let mut command = afflux(home);
        command.env("XDG_STATE_HOME", &self.system).arg("serve").arg(served).args(more);
        command.args(["--listen", "127.0.0.1:0", "--json", "--cache", "64MiB"]);
        command.arg("--control").arg(home.join("control.sock")).arg("--state").arg(&state);
        command
    }

    fn start(&self, served: &Path, more: &[&str]) -> Server {
        let home = self.two.place.scratch.path();
        Server::spawn(self.command(served, more), home.join("control.sock"), home)
    }
}

#[test]
fn memory_is_taken_on_a_host_whose_system_is_read_only() {
    for is_used in [false, true] {
        let Some(host) = Appliance::try_new() else { return };
        let disk = &host.two.disk;
        if is_used {
            // Its directory and a record are there.
            host.start(&host.two.place.scratch.directory("others"), &[]).stop();
        }
        host.mount.take_no_changes();
        let arena = host.two.place.arena();
        let in_arena = ["--arena", arena.to_str().unwrap()];
        let server = host.start(disk, &[&in_arena[..], &LAZY].concat());
        let mut client = Client::mount(&server);
        let (directory, name) = way(&mut client, "inner/f");
        client.write_file_uncommitted(&directory, name, &Bytes::new(21).vec(100_000));
        server.kill();
        host.start(disk, &in_arena).stop();
        assert!(host.two.on_disk() == Bytes::new(21).vec(100_000));
        host.start(disk, &[]).stop();
    }
}

#[test]
fn a_record_that_has_the_directory_and_cannot_be_changed_refuses_a_start() {
    let Some(host) = Appliance::try_new() else { return };
    host.start(&host.two.disk, &[]).stop();
    host.mount.take_no_changes();
    for more in [&[][..], &["--check"]] {
        let output = host.command(&host.two.disk, more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("Make the record writable, or remove it"), "{said}");
    }
}

/// A client that hears the verifier of its uncommitted writes sends none of them again.
#[test]
fn a_verifier_is_not_continued_after_a_killed_server_with_a_copy_of_the_state_directory() {
    let Some(two) = Two::of_disk() else { return };
    let start = || Server::start(two.place.scratch.path(), &[&two.disk], &LAZY);
    start().stop();
    let copy = two.place.scratch.path().join("copy");
    copy_state(&two.state(), &copy);
    let more = [&LAZY[..], &["--state", copy.to_str().unwrap()]].concat();
    let server = Server::start(two.place.scratch.path(), &[&two.disk], &more);
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file_uncommitted(&root, "f", b"lost");
    let verifier = client.verifier();
    server.kill();
    let server = start();
    let mut client = Client::mount(&server);
    client.commit(&file);
    assert_ne!(client.verifier(), verifier);
    server.stop();
}
