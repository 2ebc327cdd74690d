//! `afflux eject` on a real loop device, with a real server and other programs that use it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::PoisonError;

use rustix::process::Signal;

use crate::client::Client;
use crate::mounted::{Mounted, can_mount, is_mounted};
use crate::scratch::{Bytes, LOOP_DEVICES, Mount, Scratch};
use crate::server::{LAZY, Server, afflux, eventually, run, text};

/// A mounted disk for one test.
struct Disk {
    mount: Mount,
    place: PathBuf,
    _around: Mount,
    scratch: Scratch,
}

impl Disk {
    fn new() -> Option<Self> {
        let scratch = Scratch::new();
        let place = scratch.directory("disk");
        let around = Mount::shared(scratch.path())?;
        let mount = Mount::ext4(&scratch.path().join("image"), &place, 64 << 20)?;
        Some(Self { mount, place, _around: around, scratch })
    }

    fn eject(&self, more: &[&str]) -> Output {
        self.eject_named(self.mount.device(), more)
    }

    fn eject_named(&self, name: &str, more: &[&str]) -> Output {
        let _alone = LOOP_DEVICES.read().unwrap_or_else(PoisonError::into_inner);
        run(self.scratch.path(), &[&["eject", name], more].concat())
    }

    /// The words of a refusal.
    fn refused(&self, more: &[&str]) -> String {
        let output = self.eject(more);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("not safe to unplug"), "{said}");
        said
    }

    /// A command in a mount namespace where this disk stays mounted, and no other disk is. An unmount of another test's
    /// disk reaches the namespace before.
    fn command_with_own_mounts(&self) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "slave", "sh", "-c"]);
        let leave =
            r#"grep /dev/loop /proc/self/mountinfo | cut -d ' ' -f 5 | grep -v "^$0/" | xargs -r -n 1 umount -l"#;
        command.arg(format!(r#"mount --make-rprivate "$0"; {leave}; exec "$@""#)).arg(self.scratch.path());
        command
    }

    fn is_mounted(&self) -> bool {
        fs::read_to_string("/proc/mounts").unwrap().contains(&*self.place.to_string_lossy())
    }
}

/// A program that waits until it is dropped.
struct WaitingProgram(Child);

impl WaitingProgram {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits until the program itself runs; before, a copy of the shell has its process.
    fn runs(&self, program: &str) {
        let comm = format!("/proc/{}/comm", self.0.id());
        eventually("the program runs", || fs::read_to_string(&comm).is_ok_and(|name| name.trim() == program));
    }
}

impl Drop for WaitingProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_disk_is_written_out_and_safe_once_it_is_unmounted() {
    let Some(disk) = Disk::new() else { return };
    fs::write(disk.place.join("file"), Bytes::new(1).vec(8 << 20)).unwrap();
    let output = disk.eject_named(disk.place.to_str().unwrap(), &[]);
    let first = text(&output);
    assert!(output.status.code() == Some(1) && first.contains("once it is unmounted: umount"), "{first}");
    let output = disk.eject(&["--unmount", "--json"]);
    let json = text(&output);
    assert!(output.status.success() && json.contains(r#""safe":true"#), "{json}");
    assert!(!disk.is_mounted());
    let output = run(disk.scratch.path(), &["eject", "no-such-disk"]);
    assert!(output.status.code() == Some(1) && text(&output).contains("lsblk"), "{}", text(&output));
}

#[test]
fn umount_that_cannot_be_started_is_said() {
    let Some(disk) = Disk::new() else { return };
    let programs = disk.scratch.directory("programs");
    let mut command = afflux(disk.scratch.path());
    command.args(["eject", disk.mount.device(), "--unmount"]).env("PATH", &programs);
    let _alone = LOOP_DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    let output = command.output().unwrap();
    let said = text(&output);
    assert!(output.status.code() == Some(1) && said.contains("umount(8) cannot be started: No such file"), "{said}");
    assert!(disk.is_mounted());
}

#[test]
fn a_server_of_the_disk_writes_everything_before_that_is_said() {
    let Some(disk) = Disk::new() else { return };
    let data = disk.place.join("data");
    fs::create_dir(&data).unwrap();
    let home = disk.scratch.directory("home");
    let server = Server::start(&home, &[&data], &LAZY);
    let mut client = Client::mount(&server);
    let (root, bytes) = (client.root(), Bytes::new(2).vec(5 << 20));
    client.write_file_uncommitted(&root, "photo", &bytes);
    let dirty = |server: &Server| server.stat()["cache"]["dirty_bytes"].as_u64().unwrap();
    assert!(dirty(&server) > 4 << 20, "the server keeps them");
    let output = disk.eject(&[]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(dirty(&server), 0);
    assert_eq!(fs::read(data.join("photo")).unwrap(), bytes);
    assert!(said.contains(&format!("afflux (process {}) has ended", server.process())), "{said}");
    let output = disk.eject(&["--json"]);
    let verdict = text(&output);
    assert_eq!(output.status.code(), Some(1), "{verdict}");
    assert!(verdict.contains(r#""safe":false"#) && verdict.contains(&server.process().to_string()), "{verdict}");
    // `eject` does not unmount below a server.
    let said = disk.refused(&["--unmount"]);
    assert!(said.contains(&format!("process {} (afflux)", server.process())) && disk.is_mounted(), "{said}");
    drop(client);
    server.stop();
    let output = disk.eject(&["--unmount"]);
    assert!(output.status.success() && text(&output).contains("It is safe to unplug."), "{}", text(&output));
}

// rule: a server whose mount namespace has a disk that it does not serve is named as such, and not as one of the disk
#[test]
fn a_server_that_only_has_the_disk_mounted_is_not_taken_for_a_server_of_it() {
    let Some(disk) = Disk::new() else { return };
    let (home, data) = (disk.scratch.directory("home"), disk.scratch.directory("elsewhere"));
    let control = home.join("control.sock");
    let mut server = crate::server::afflux(&home);
    server.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--json", "--cache", "64MiB"]);
    server.arg("--control").arg(&control);
    let mut command = disk.command_with_own_mounts();
    command.arg(server.get_program()).args(server.get_args());
    for (name, value) in server.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    let server = Server::spawn(command, control, &home);
    let said = disk.refused(&[]);
    assert!(said.contains(&format!("process {} (afflux) has it mounted", server.process())), "{said}");
    assert!(said.contains("is written") && !said.contains("could not be asked"), "{said}");
    let said = disk.refused(&["--unmount"]);
    assert!(said.contains("in its mount namespace") && !said.contains("could not be asked"), "{said}");
    server.stop();
    let output = disk.eject(&["--unmount"]);
    assert!(output.status.success() && text(&output).contains("It is safe to unplug."), "{}", text(&output));
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.scratch.directory("home");
    let server = Server::start(&home, &[&disk.place], &LAZY);
    fs::remove_file(&server.control).unwrap();
    let said = disk.refused(&[]);
    assert!(said.contains(&format!("process {} (afflux)", server.process())), "{said}");
    assert!(said.contains("could not be asked to write") && !said.contains("is written"), "{said}");
    server.stop();
}

#[test]
fn a_stopped_server_is_named_at_once() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.scratch.directory("home");
    let server = Server::start(&home, &[&disk.place], &LAZY);
    server.signal(Signal::STOP);
    let status = format!("/proc/{}/status", server.process());
    eventually("the server is stopped", || fs::read_to_string(&status).is_ok_and(|now| now.contains("State:\tT")));
    let output = disk.eject(&[]);
    server.signal(Signal::CONT);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("kill -CONT {}", server.process())) && !said.contains("is written"), "{said}");
    server.stop();
}

#[test]
fn every_program_that_uses_the_disk_is_named() {
    let Some(disk) = Disk::new() else { return };
    let file = disk.place.join("file");
    fs::write(&file, "bytes").unwrap();
    let works = WaitingProgram::start(Command::new("cat").current_dir(&disk.place));
    works.runs("cat");
    let opens = WaitingProgram::start(Command::new("cat").stdout(File::options().append(true).open(&file).unwrap()));
    opens.runs("cat");
    for more in [&[][..], &["--unmount"]] {
        let said = disk.refused(more);
        assert!(said.contains(&format!("process {} (cat) works in", works.pid())), "{said}");
        assert!(said.contains(&format!("process {} (cat) has", opens.pid())) && said.contains("/file open"), "{said}");
    }
    assert!(disk.is_mounted());
    drop((works, opens));
    // Opens the device itself, past any file system.
    let raw = WaitingProgram::start(Command::new("cat").stdout(File::open(disk.mount.device()).unwrap()));
    raw.runs("cat");
    let said = disk.refused(&["--unmount"]);
    assert!(said.contains(&format!("process {} (cat) has {} open", raw.pid(), disk.mount.device())), "{said}");
}

#[test]
fn a_mount_in_another_namespace_and_one_that_is_only_detached_keep_it_from_being_safe() {
    let Some(disk) = Disk::new() else { return };
    let other = WaitingProgram::start(disk.command_with_own_mounts().arg("cat"));
    other.runs("cat");
    let detached = |place: &Path| Command::new("umount").arg("-l").arg(place).status().unwrap().success();
    assert!(detached(&disk.place) && !disk.is_mounted());
    let said = disk.refused(&[]);
    assert!(said.contains(&format!("process {} (cat) has it mounted on", other.pid())), "{said}");
    drop(other);
    let output = disk.eject(&[]);
    assert!(output.status.success() && text(&output).contains("It is safe to unplug."), "{}", text(&output));
}

#[test]
fn a_loop_device_over_a_file_of_the_disk_is_named() {
    let Some(disk) = Disk::new() else { return };
    let (image, place) = (disk.place.join("inner"), disk.scratch.directory("inner"));
    let Some(inner) = Mount::ext4(&image, &place, 16 << 20) else { return };
    let name = inner.device().trim_start_matches("/dev/").to_owned();
    let said = disk.refused(&[]);
    assert!(said.contains(&format!("{name} is made from")) && said.contains("losetup -d"), "{said}");
}

/// A disk with a mount of `data` on it at `point`; `data` is the point itself if there is none.
fn mounted(point: Option<&str>) -> Option<(Disk, Mounted)> {
    let disk = if can_mount() { Disk::new()? } else { return None };
    let data = disk.place.join("data");
    fs::create_dir(&data).unwrap();
    let point = point.map_or_else(|| data.clone(), |name| disk.scratch.directory(name));
    let link = disk.scratch.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    let mounted = Mounted::start_with(&disk.scratch.directory("home"), &link, &point, &LAZY);
    Some((disk, mounted))
}

// rule: eject names each mount of `afflux mount` that stands on the disk, and unmounts it with --unmount
#[test]
fn a_mount_of_a_directory_of_the_disk_is_named_and_unmounted_first() {
    for point in [None, Some("point")] {
        let Some((disk, mut mounted)) = mounted(point) else { return };
        let bytes = Bytes::new(3).vec(4 << 20);
        fs::write(mounted.path("photo"), &bytes).unwrap();
        let place = mounted.point.to_str().unwrap().to_owned();
        for name in [disk.mount.device(), &place] {
            let output = disk.eject_named(name, &[]);
            let said = text(&output);
            let steps = format!("once it is unmounted: umount {place} {} (or --unmount)", disk.place.display());
            assert!(output.status.code() == Some(1) && said.contains(&steps), "{name}: {said}");
            assert_eq!(mounted.server().stat()["cache"]["dirty_bytes"], 0);
        }
        let output = disk.eject_named(&place, &["--unmount"]);
        let said = text(&output);
        assert!(output.status.success() && said.contains("It is safe to unplug."), "{said}");
        assert!(!is_mounted(&mounted.point) && !disk.is_mounted());
        assert_eq!(mounted.server.take().unwrap().wait().code, Some(0));
        let again = Mount::of(&disk.scratch.path().join("image"), &disk.scratch.directory("again")).unwrap();
        assert!(fs::read(disk.scratch.path().join("again/data/photo")).unwrap() == bytes);
        drop(again);
    }
}

#[test]
fn a_mount_over_the_whole_disk_does_not_hide_the_disk() {
    if !can_mount() {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let mut mounted = Mounted::start_with(&disk.scratch.directory("home"), &disk.place, &disk.place, &LAZY);
    fs::write(mounted.path("photo"), "bytes").unwrap();
    let place = disk.place.to_str().unwrap();
    let said = text(&disk.eject_named(place, &[]));
    assert!(said.contains(&format!("umount {place} {place} (or --unmount)")), "{said}");
    mounted.server.take().unwrap().kill();
    let output = disk.eject(&[]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains(&format!("umount {place}, then try again")), "{said}");
    assert!(Command::new("umount").arg("-l").arg(place).status().unwrap().success());
    let said = text(&disk.eject(&["--unmount"]));
    assert!(said.contains("It is safe to unplug."), "{said}");
}

#[test]
fn a_program_that_uses_a_mount_of_the_disk_is_named() {
    let Some((disk, mounted)) = mounted(Some("point")) else { return };
    let works = WaitingProgram::start(Command::new("cat").current_dir(&mounted.point));
    works.runs("cat");
    for more in [&[][..], &["--unmount"]] {
        let said = disk.refused(more);
        assert!(said.contains(&format!("process {} (cat) works in", works.pid())), "{said}");
    }
    assert!(is_mounted(&mounted.point) && disk.is_mounted());
    drop(works);
    mounted.stop();
}

#[test]
fn a_server_with_a_mount_that_also_serves_the_network_is_named() {
    if !can_mount() {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let (home, point) = (disk.scratch.directory("home"), disk.scratch.directory("point"));
    let mut mounted = Mounted { server: None, point: point.clone() };
    mounted.server = Some(Server::start(&home, &[&disk.place], &["--mount", point.to_str().unwrap()]));
    let process = mounted.server().process();
    let said = text(&disk.eject(&[]));
    assert!(said.contains(&format!("once afflux (process {process}) has ended and it is unmounted")), "{said}");
    assert!(!said.contains(point.to_str().unwrap()), "{said}");
    assert!(disk.refused(&["--unmount"]).contains(&format!("process {process} (afflux)")));
    assert!(is_mounted(&point));
    mounted.stop();
}

#[test]
fn a_mount_in_another_namespace_that_goes_along_is_in_nobodys_way() {
    let Some(disk) = Disk::new() else { return };
    let other = WaitingProgram::start(Command::new("unshare").args(["--mount", "--propagation", "slave", "cat"]));
    other.runs("cat");
    let output = disk.eject(&["--unmount"]);
    assert!(output.status.success() && text(&output).contains("It is safe to unplug."), "{}", text(&output));
}
