//! A stand-in for systemd: its socket for messages, its store of descriptors, the start of a server with stored
//! descriptors.

use std::fs::{self, File};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use rustix::fs::{FileType, fstat};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::server::{Server, afflux, eventually};

pub(crate) struct Systemd {
    home: PathBuf,
    kept: Arc<Mutex<Kept>>,
    listens: Option<JoinHandle<()>>,
}

/// The stored descriptors, and the removals so far.
#[derive(Default)]
struct Kept {
    stored: Vec<(String, OwnedFd)>,
    removals: Vec<String>,
}

impl Kept {
    fn told(&mut self, text: &str, descriptors: Vec<OwnedFd>) {
        let has = |line: &str| text.lines().any(|it| it == line);
        let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or("stored");
        if has("FDSTOREREMOVE=1") {
            self.stored.retain(|(of, _)| of != name);
            self.removals.push(name.to_owned());
        } else if has("FDSTORE=1") {
            assert!(has("FDPOLL=0"), "a hang-up would remove it: {text}");
            for descriptor in descriptors {
                // As systemd does.
                if !self.stored.iter().any(|(_, other)| is_same(other, &descriptor)) {
                    self.stored.push((name.to_owned(), descriptor));
                }
            }
        }
    }
}

/// Whether two descriptors are of one open file.
fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let number = |it: &OwnedFd| rustix::fs::fstat(it).map(|found| (found.st_dev, found.st_ino)).unwrap();
    number(one) == number(other)
}

impl Systemd {
    pub(crate) fn new(home: &Path) -> Self {
        let path = home.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let kept = Arc::<Mutex<Kept>>::default();
        let told = Arc::clone(&kept);
        let listens = thread::spawn(move || {
            loop {
                let (text, descriptors) = received(&socket);
                if text == "END" {
                    return;
                }
                told.lock().unwrap().told(&text, descriptors);
            }
        });
        Self { home: home.to_owned(), kept, listens: Some(listens) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// Copies of the stored descriptors with this name.
    pub(crate) fn stored(&self, name: &str) -> Vec<OwnedFd> {
        let kept = self.kept();
        let named = kept.stored.iter().filter(|(of, _)| of == name);
        named.map(|(_, descriptor)| descriptor.try_clone().unwrap()).collect()
    }

    /// How many descriptors of open files and directories without a name are stored.
    pub(crate) fn unnamed(&self) -> usize {
        self.kept().stored.iter().filter(|(name, _)| name.starts_with("unnamed-")).count()
    }

    /// The name of the first of them.
    pub(crate) fn first_unnamed(&self) -> Option<String> {
        self.kept().stored.iter().map(|(name, _)| name.clone()).find(|name| name.starts_with("unnamed-"))
    }

    /// Drops the descriptors of open files without a name, as a manager with a lower limit would have.
    pub(crate) fn drop_unnamed(&self) {
        self.kept().stored.retain(|(name, _)| !name.starts_with("unnamed-"));
    }

    /// Waits until so many descriptors are stored under the names of memory and socket.
    pub(crate) fn has(&self, arenas: usize, sockets: usize) {
        eventually("the store has what the server left", || {
            (self.stored("arena").len(), self.stored("listen").len()) == (arenas, sockets)
        });
    }

    /// The names that servers have removed, in order.
    pub(crate) fn removals(&self) -> Vec<String> {
        self.kept().removals.clone()
    }

    /// Stores a descriptor in place of all with its name.
    pub(crate) fn put(&self, name: &str, descriptor: impl Into<OwnedFd>) {
        let mut kept = self.kept();
        kept.stored.retain(|(of, _)| of != name);
        kept.stored.push((name.to_owned(), descriptor.into()));
    }

    /// Drops all that is stored, as at the end of the unit.
    pub(crate) fn clear(&self) {
        self.kept().stored.clear();
    }

    /// The logs of all servers so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Starts a server of the directory. It has the stored descriptors, from number 3 on, and the variables that name
    /// them.
    pub(crate) fn start(&self, data: &Path, more: &[&str]) -> Server {
        Server::spawn_logging(self.command(data, more), self.home.join("control.sock"), &self.home)
    }

    /// Runs a server that does not start.
    pub(crate) fn refused(&self, data: &Path, more: &[&str]) -> Output {
        let output = self.command(data, more).output().unwrap();
        assert!(!output.status.success(), "{}", self.log());
        output
    }

    fn command(&self, data: &Path, more: &[&str]) -> Command {
        let mut command = self.passing();
        command.arg("serve").arg(data).args(["--json", "--control"]).arg(self.home.join("control.sock"));
        for default in [["--cache", "64MiB"], ["--listen", "127.0.0.1:0"]] {
            command.args(default.iter().filter(|_| !more.contains(&default[0])));
        }
        command.args(more);
        command
    }

    /// Starts `afflux mount`, as [`Systemd::start`].
    pub(crate) fn mount(&self, data: &Path, point: &Path, more: &[&str]) -> Server {
        let command = self.mount_command(data, point, more);
        Server::spawn_logging(command, self.home.join("control.sock"), &self.home)
    }

    /// Runs `afflux mount`, which does not start.
    pub(crate) fn mount_refused(&self, data: &Path, point: &Path, more: &[&str]) {
        let output = self.mount_command(data, point, more).output().unwrap();
        assert!(!output.status.success(), "{}", self.log());
    }

    fn mount_command(&self, data: &Path, point: &Path, more: &[&str]) -> Command {
        let mut command = self.passing();
        command.arg("mount").arg(data).arg(point).args(["--json", "--cache", "64MiB", "--control"]);
        command.arg(self.home.join("control.sock")).args(more);
        command
    }

    /// The program with the stored descriptors, without arguments.
    fn passing(&self) -> Command {
        let kept = self.kept();
        let names: Vec<&str> = kept.stored.iter().map(|(name, _)| &name[..]).collect();
        let own = afflux(&self.home);
        let mut command = Command::new("sh");
        let (mut takes, mut others) = (String::new(), Vec::new());
        // A shell has no descriptor 3 of its own.
        for (number, (_, descriptor)) in (3..).zip(&kept.stored) {
            let path = format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd());
            let from = match FileType::from_raw_mode(fstat(descriptor).unwrap().st_mode) {
                FileType::RegularFile => format!("<>{path}"),
                FileType::Directory => format!("<{path}"),
                _ => {
                    others.push(descriptor.try_clone().unwrap());
                    ["<&0", "<&2"][others.len() - 1].to_owned()
                }
            };
            takes += &format!(" {number}{from}");
        }
        // The number of its process stays with `exec`.
        let script = format!("exec{takes} 0</dev/null 2>>\"$LOG\"; export LISTEN_PID=$$; exec \"$@\"");
        command.args(["-c", &script, "sh"]).arg(own.get_program());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("NOTIFY_SOCKET", self.home.join("notify")).env("LOG", self.home.join("log"));
        if !names.is_empty() {
            command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        }
        let mut others = others.into_iter();
        if let Some(first) = others.next() {
            command.stdin(first);
        }
        if let Some(second) = others.next() {
            command.stderr(second);
        }
        command
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"END", self.home.join("notify")));
        if let (Ok(_), Some(listens)) = (sent, self.listens.take()) {
            let ended = listens.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

fn received(socket: &UnixDatagram) -> (String, Vec<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 4096];
    let received = recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC);
    let length = received.unwrap().bytes;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = descriptors.flatten().collect();
    (String::from_utf8_lossy(&bytes[..length]).into_owned(), descriptors)
}

/// The first bytes of a stored memory.
pub(crate) fn first_bytes(memory: &OwnedFd, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let file = File::from(memory.try_clone().unwrap());
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    bytes
}
