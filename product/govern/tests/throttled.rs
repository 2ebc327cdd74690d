//! With a limit above a disk, such as a cgroup's or a cloud's, the reported speed is the limit, not the disk's own. The
//! test runs as root, on a loop device behind the kernel's throttle.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afflux_govern::{EventKind, Governor, Host, Options};

const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
const LIMIT: u64 = 25_000_000;
const SECOND: u64 = 1_000_000_000;

/// A file system on a loop device that lets a given number of bytes a second through.
struct Throttled {
    device: String,
    number: String,
    path: PathBuf,
}

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Throttled {
    fn new(place: &Path) -> Option<Self> {
        if !Path::new(THROTTLE).exists() {
            return None;
        }
        let (image, path) = (place.join("image"), place.join("mounted"));
        fs::create_dir(&path).ok()?;
        File::create(&image).ok()?.set_len(2 << 30).ok()?;
        let device = run("losetup", &["-f", "--show", "--direct-io=on", image.to_str()?])?;
        let number = run("lsblk", &["-ndo", "MAJ:MIN", &device])?;
        let made = Self { device, number, path };
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", options, &made.device])?;
        run("mount", &[&made.device, made.path.to_str()?])?;
        made.lets_through(LIMIT)?;
        Some(made)
    }

    fn lets_through(&self, bytes_per_second: u64) -> Option<()> {
        fs::write(THROTTLE, format!("{} {bytes_per_second}", self.number)).ok()
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        // Without the throttle the dirty pages are written quickly.
        let _ = self.lets_through(0);
        let _ = Command::new("umount").arg(&self.path).output();
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

#[test]
fn a_limit_above_the_disk_is_the_speed_that_is_told() {
    let place = tempfile::tempdir().unwrap();
    let Some(disk) = Throttled::new(place.path()) else {
        afflux_scratch::skipped!("no throttled disk can be made here");
        return;
    };
    let name = disk.device.trim_start_matches("/dev/").to_owned();
    let options = Options { devices: vec![(name, Some(SECOND))], ..Options::default() };
    let (mut governor, _, _) = Governor::start(Host::new(Path::new("/")), options, place.path()).unwrap();
    let (over, began) = (AtomicBool::new(false), Instant::now());
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut file, block) = (File::create(disk.path.join("stream")).unwrap(), vec![7; 1 << 20]);
            for _ in 0..1500 {
                if over.load(Ordering::Relaxed) || file.write_all(&block).is_err() {
                    return;
                }
            }
        });
        let mut told = Vec::new();
        loop {
            governor.sample(began.elapsed().as_nanos() as u64);
            for event in governor.look(&|_| None).unwrap() {
                if let EventKind::Limited { limit_bytes, .. } = event.what {
                    println!("{:?}: a limit of {} MB", began.elapsed(), limit_bytes / 1_000_000);
                }
            }
            let speed = governor.rows().iter().find(|row| row.disk.number == disk.number).unwrap().bytes_per_second;
            println!("{:?}: {:?} MB/s", began.elapsed(), speed.map(|speed| speed / 1_000_000));
            told.extend(speed);
            let is_near = speed.is_some_and(|speed| speed.abs_diff(LIMIT) < LIMIT / 5);
            if is_near || began.elapsed() > Duration::from_secs(40) {
                break;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        over.store(true, Ordering::Relaxed);
        // With the throttle in force, the writer would wait for the disk.
        disk.lets_through(0).unwrap();
        told
    });
    governor.end().unwrap();
    let last = told.last().copied().unwrap();
    assert!(last.abs_diff(LIMIT) < LIMIT / 5, "{last} bytes a second were reported instead of {LIMIT}: {told:?}");
    assert!(told.iter().all(|speed| *speed < 4 * LIMIT), "it was reported as fast at first: {told:?}");
}
