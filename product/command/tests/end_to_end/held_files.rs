//! A local program that holds the kernel's own locks of files, for ever: other files of the disk go on.

//! rule: 6: files whose requests do not end keep no other file of their device waiting

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::Server;

/// More than a ring of two processors has threads in the kernel unless it asks for more.
const FILES: usize = 12;

/// Writes to each named file from memory that never comes: the kernel waits for it with the file's lock held.
const HOLDER: &str = "
import ctypes, fcntl, os, platform, struct, sys, threading
c = ctypes.CDLL(None, use_errno=True)
faults = c.syscall({'x86_64': 323, 'aarch64': 282}[platform.machine()], 0)
if faults < 0: sys.exit(print('userfaultfd: ' + os.strerror(ctypes.get_errno())))
fcntl.ioctl(faults, 0xc018aa3f, struct.pack('QQQ', 0xaa, 0, 0))
c.mmap.restype = ctypes.c_void_p
memory = c.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_long(0))
fcntl.ioctl(faults, 0xc020aa00, struct.pack('QQQQ', memory, 1 << 20, 1, 0))
def hold(at, path):
    file = os.open(path, os.O_WRONLY)
    c.write(file, ctypes.c_void_p(memory + 4096 * at), ctypes.c_size_t(4096))
def holds(thread):
    with open('/proc/self/task/%d/syscall' % thread.native_id) as call: return call.read().startswith('1 ')
threads = [threading.Thread(target=hold, args=one, daemon=True) for one in enumerate(sys.argv[1:])]
for one in threads: one.start()
while platform.machine() == 'x86_64' and not all(map(holds, threads)): pass
print('held', flush=True)
sys.stdin.read()
";

/// Holds the locks of files until it is dropped.
struct Holder(Child);

impl Holder {
    /// None, with a message, if that is not possible here.
    fn of(files: &[PathBuf]) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", HOLDER]).args(files).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(_) => {
                afflux_scratch::skipped!("python3 is not installed");
                return None;
            }
        };
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let holder = Self(child);
        if said.trim() == "held" {
            return Some(holder);
        }
        afflux_scratch::skipped!("{}", said.trim());
        None
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn on_host(data: &Path, number: usize) -> PathBuf {
    data.join(format!("held{number}"))
}

#[test]
fn files_whose_locks_a_local_program_holds_stop_no_other_file() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut client = Client::mount(&server);
    let (root, bytes) = (client.root(), Bytes::new(7).vec(256 << 10));
    let held: Vec<_> = (0..FILES).map(|number| client.write_file(&root, &format!("held{number}"), &bytes)).collect();
    let other = client.write_file(&root, "other", &bytes);
    let files: Vec<_> = (0..FILES).map(|number| on_host(&data, number)).collect();
    let Some(holder) = Holder::of(&files) else { return };
    let ended = AtomicUsize::new(0);
    let newer = Bytes::new(8).vec(64 << 10);
    thread::scope(|threads| {
        for file in &held {
            let (server, ended, newer) = (&server, &ended, &newer);
            threads.spawn(move || {
                let mut client = Client::mount(server);
                client.write_at(file, 0, newer);
                client.commit(file);
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        for round in 0..4 {
            client.write_at(&other, round << 16, &newer);
            client.commit(&other);
            client.write_file(&root, &format!("new{round}"), &bytes);
        }
        assert_eq!(ended.load(Ordering::Relaxed), 0, "they are still held");
        drop(holder);
    });
    assert_eq!(ended.load(Ordering::Relaxed), FILES);
    for file in files {
        let there = std::fs::read(file).unwrap();
        assert!(there[..newer.len()] == newer[..] && there[newer.len()..] == bytes[newer.len()..]);
    }
}
