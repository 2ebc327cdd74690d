//! The mounts that a server of a mount retains in its own view, where the host's mounts are private.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::PoisonError;

use crate::mounted::can_mount;
use crate::scratch::{LOOP_DEVICES, Scratch};
use crate::server::{Server, afflux, text};

/// A mount namespace of its own, all of whose mounts are private. A process holds it open.
struct PrivateView(Child);

impl PrivateView {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        // The disks of other tests leave the view, and no other test ejects one before.
        let _alone = LOOP_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
        let leave = "grep /dev/loop /proc/self/mountinfo | cut -d ' ' -f 5 | sort -r | xargs -r -n 1 umount -l";
        command.args(["-m", "--propagation", "private", "sh", "-c", &format!("{leave}; echo; exec cat")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It has its namespace once it has said a line.
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        Self(child)
    }

    /// The command as it runs in the view.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--mount=/proc/{}/ns/mnt", self.0.id())).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    fn run(&self, script: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-ec", script]);
        self.inside(&command).output().unwrap()
    }

    /// Runs a script that must succeed.
    fn must(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A server in the view.
    fn server(&self, home: &Path, arguments: &[&str]) -> Server {
        fs::create_dir_all(home).unwrap();
        let control = home.join("control.sock");
        let mut command = afflux(home);
        command.args(arguments).args(["--json", "--cache", "64MiB", "--control"]).arg(&control);
        Server::spawn(self.inside(&command), control, home)
    }

    /// Whether a process sees a mount at a mount point.
    fn sees(process: u32, place: &Path) -> bool {
        let table = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap();
        table.lines().any(|line| line.split(' ').nth(4) == place.to_str())
    }
}

impl Drop for PrivateView {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A disk that is mounted in a view, and its loop device.
struct Disk {
    device: String,
    image: PathBuf,
    place: PathBuf,
}

impl Disk {
    fn mounted(view: &PrivateView, scratch: &Scratch, place: PathBuf) -> Self {
        let name = place.strip_prefix(scratch.path()).unwrap().to_str().unwrap().replace('/', "-");
        let image = scratch.path().join(format!("{name}.image"));
        fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let device = {
            let _alone = LOOP_DEVICES.write().unwrap_or_else(PoisonError::into_inner);
            let output = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().unwrap();
            assert!(output.status.success(), "{}", text(&output));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let disk = Self { device, image, place };
        view.must(&format!("mkfs.ext4 -q {0}; mkdir -p {1}; mount {0} {1}", disk.device, disk.place.display()));
        disk
    }

    /// Takes the disk out of use, and makes a new file system on it. mke2fs refuses a disk that is mounted anywhere.
    fn is_let_go(&self, view: &PrivateView) {
        view.must(&format!("umount {}", self.place.display()));
        let output = view.run(&format!("mkfs.ext4 -q {}", self.device));
        assert!(output.status.success(), "{}: {}", self.place.display(), text(&output));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
        let _ = fs::remove_file(&self.image);
    }
}

// rule: a server of a mount keeps no other disk in use, also where the host's mounts are private
#[test]
fn another_disk_is_let_go_while_a_mount_is_served_in_a_private_view() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let view = PrivateView::new();
    let at = |name: &str| scratch.directory(name);
    let (stick, upper) = (at("stick"), at("upper"));
    let disks = [stick.clone(), stick.join("in_it"), upper].map(|place| Disk::mounted(&view, &scratch, place));
    let served = Disk::mounted(&view, &scratch, at("served"));
    let below = Disk::mounted(&view, &scratch, served.place.join("below"));
    let (point, other) = (at("point"), at("other"));
    let of = |path: &Path| path.to_str().unwrap().to_owned();
    let mount = view.server(&scratch.path().join("one"), &["mount", &of(&served.place), &of(&served.place)]);
    let arguments = ["serve", &of(&other), "--mount", &of(&point), "--listen", "127.0.0.1:0"];
    let serve = view.server(&scratch.path().join("two"), &arguments);
    for server in [&mount, &serve] {
        for disk in &disks {
            assert!(!PrivateView::sees(server.process(), &disk.place), "{}", disk.place.display());
        }
    }
    assert!(PrivateView::sees(mount.process(), &below.place), "a file system below the served directory");
    assert!(!PrivateView::sees(serve.process(), &served.place), "what another server serves");
    view.must(&format!("echo bytes > {}/file; sync -d {0}/file", below.place.display()));
    for disk in [1, 0, 2].map(|at| &disks[at]) {
        disk.is_let_go(&view);
    }
    // The first server ends with its mount, though another one has started after it.
    view.must(&format!("umount {0}; umount {0}/below; umount {0}", served.place.display()));
    assert_eq!(mount.wait().code, Some(0));
    let output = view.run(&format!("mkfs.ext4 -q {}; mkfs.ext4 -q {}", served.device, below.device));
    assert!(output.status.success(), "{}", text(&output));
    serve.stop();
}
