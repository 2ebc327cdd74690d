//! Programs that write at the same time through a mount to a slow disk.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use afflux_disk::{Disk, DiskOptions, Ext4, Rates};

use crate::mounted::{Mounted, can_mount};
use crate::scratch::{LOOP_DEVICES, Scratch};
use crate::server::eventually;

const BYTES_PER_SECOND: u64 = 8_000_000;
/// Bytes of both programs until the server has learned the disk's speed, and until the end.
const SETTLED: u64 = 36 << 20;
const ALL: u64 = 68 << 20;

/// Writes files of its own, one by each thread, until it is killed.
const WRITER: &str = "import sys, threading
def write(number):
    with open(f'{sys.argv[1]}-{number}', 'wb', buffering=0) as file:
        while True:
            file.write(bytes(65536))
for number in range(int(sys.argv[2])):
    threading.Thread(target=write, args=[number]).start()
";

/// A slow disk with an ext4 at a point; none, with a message, if this machine cannot have one.
pub(crate) fn slow_disk(scratch: &Scratch, point: &Path, write_bytes_per_s: u64) -> Option<(Ext4, Disk)> {
    let rates = Rates { write_bytes_per_s, queue: 32, ..Rates::default() };
    let options = DiskOptions { rates, ..DiskOptions::new(256 << 20) };
    let _alone = LOOP_DEVICES.write();
    let made = Disk::new(scratch.path(), options).and_then(|disk| Ext4::format(&disk, point).map(|ext4| (ext4, disk)));
    made.map_err(|error| afflux_scratch::skipped!("no disk: {error}")).ok()
}

/// A program with threads that write files.
struct Writer(Child);

impl Writer {
    fn start(at: &Path, name: &str, threads: u32) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", WRITER, name, &threads.to_string()]).current_dir(at).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The bytes of a program's files.
fn written(at: &Path, name: &str) -> u64 {
    let files = fs::read_dir(at).unwrap().map(Result::unwrap);
    let own = files.filter(|file| file.file_name().to_str().unwrap().starts_with(name));
    own.map(|file| file.metadata().unwrap().len()).sum()
}

// rule: processes have equal parts of a disk below a mount, however many threads and files each has
#[test]
fn real_programs_of_twenty_threads_and_of_one_have_equal_parts() {
    if !can_mount() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        afflux_scratch::skipped!("python3 is not installed");
        return;
    }
    let scratch = Scratch::new();
    let (home, point) = (scratch.directory("home"), scratch.directory("disk"));
    let Some(_disk) = slow_disk(&scratch, &point, BYTES_PER_SECOND) else { return };
    let mounted = Mounted::start(&home, &point, &point);
    let writers = [Writer::start(&point, "many", 20), Writer::start(&point, "one", 1)];
    let parts = || [written(&point, "many"), written(&point, "one")];
    let reach = |bytes: u64| {
        let mut now = [0; 2];
        eventually("the programs have written so much", || {
            now = parts();
            now.iter().sum::<u64>() >= bytes
        });
        now
    };
    let (before, after) = (reach(SETTLED), reach(ALL));
    let [many, one] = [0, 1].map(|program| after[program] - before[program]);
    let part = one as f64 / (many + one) as f64;
    // By threads it would be a twentieth. A busy machine delays one program more than the other.
    assert!((0.3..=0.7).contains(&part), "{one} bytes by one thread, {many} by twenty");
    drop(writers);
    mounted.stop();
}
