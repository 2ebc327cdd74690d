//! On a real disk that is slow, the reported speed is the disk's. With a limit above the disk, such as a cgroup's or a
//! cloud's, it is that limit. The tests run as root. One has a disk of our own with a rate. The other has the
//! kernel's throttle above such a disk, and needs control groups of version 1.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afflux_disk::{Disk, DiskOptions, Ext4, Rates};
use afflux_govern::{EventKind, Governor, GovernorOptions, Host};
use afflux_scratch::Scratch;

/// The disk's rate is taken over this time.
const WINDOW: Duration = Duration::from_secs(6);
const THROTTLE: &str = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device";
const LIMIT: u64 = 25_000_000;
const SECOND: u64 = 1_000_000_000;
const DISK_BYTES: u64 = 2 << 30;

/// A mounted file system on a disk that lets a given number of bytes a second through.
struct Slow {
    ext4: Ext4,
    disk: Disk,
    /// The kernel's throttle of this device, unless the disk itself is slow.
    throttled: Option<String>,
    scratch: Scratch,
}

impl Slow {
    /// None, with a message, if this machine cannot have one.
    fn new(rates: Rates, has_throttle: bool) -> Option<Self> {
        let scratch = Scratch::new(&std::env::temp_dir(), "slow").unwrap();
        let point = scratch.path().join("mounted");
        fs::create_dir(&point).unwrap();
        let options = DiskOptions { rates, ..DiskOptions::new(DISK_BYTES) };
        let made = Disk::new(scratch.path(), options).and_then(|disk| Ok((Ext4::format(&disk, &point)?, disk)));
        let (ext4, disk) = match made {
            Ok(made) => made,
            Err(error) => {
                afflux_scratch::skipped!("no disk: {error}");
                return None;
            }
        };
        let mut slow = Self { ext4, disk, throttled: None, scratch };
        if has_throttle {
            slow.throttled = Some(slow.number());
            slow.lets_through(LIMIT);
        }
        Some(slow)
    }

    fn name(&self) -> &str {
        self.disk.device().trim_start_matches("/dev/")
    }

    /// The device's number, as in `7:0`.
    fn number(&self) -> String {
        let path = PathBuf::from(format!("/sys/block/{}/dev", self.name()));
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// Sets the kernel's throttle; 0 takes it away.
    fn lets_through(&self, bytes_per_second: u64) {
        if let Some(number) = &self.throttled {
            fs::write(THROTTLE, format!("{number} {bytes_per_second}")).unwrap();
        }
    }

    /// Bytes that the disk has taken.
    fn written_bytes(&self) -> u64 {
        let figures = fs::read_to_string(format!("/sys/block/{}/stat", self.name())).unwrap();
        figures.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
    }

    /// The speeds that a governor reports beside a stream of writes, until the last one is near the disk's rate in the
    /// last seconds; and that rate.
    fn reported(&self) -> (Vec<u64>, u64) {
        let options =
            GovernorOptions { devices: vec![(self.name().to_owned(), Some(SECOND))], ..GovernorOptions::default() };
        let run = self.scratch.path().join("run");
        let (mut governor, _, _) = Governor::start(Host::new(Path::new("/")), options, &run).unwrap();
        let (over, began, number) = (AtomicBool::new(false), Instant::now(), self.number());
        let (mut reported, mut history, mut rate) = (Vec::new(), Vec::new(), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut file, block) = (File::create(self.ext4.path().join("stream")).unwrap(), vec![7; 1 << 20]);
                for _ in 0..1500 {
                    if over.load(Ordering::Relaxed) || file.write_all(&block).is_err() {
                        return;
                    }
                }
            });
            loop {
                governor.sample(began.elapsed().as_nanos() as u64);
                for event in governor.look(&|_| None).unwrap() {
                    if let EventKind::Limited { limit_bytes, .. } = event.what {
                        println!("{:?}: a limit of {} MB", began.elapsed(), limit_bytes / 1_000_000);
                    }
                }
                let speed = governor.rows().iter().find(|row| row.disk.number == number).unwrap().bytes_per_second;
                println!("{:?}: {:?} MB/s", began.elapsed(), speed.map(|speed| speed / 1_000_000));
                reported.extend(speed);
                let now = began.elapsed();
                history.push((now, self.written_bytes()));
                let (since, before) = *history.iter().find(|(at, _)| now - *at <= WINDOW).unwrap();
                let window = (now - since).as_secs_f64();
                rate = ((self.written_bytes() - before) as f64 / window.max(1.0)) as u64;
                let is_near = window > 4.0 && speed.is_some_and(|speed| speed.abs_diff(rate) < rate / 5);
                if is_near || now > Duration::from_secs(40) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            over.store(true, Ordering::Relaxed);
            // With the throttle in force, the writer would wait for the disk.
            self.lets_through(0);
        });
        governor.end().unwrap();
        (reported, rate)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // Without the throttle the dirty pages are written quickly.
        self.lets_through(0);
    }
}

/// A busy machine may make the disk slower than its limit, and never faster.
fn is_the_rate(reported: &[u64], rate: u64) {
    let last = reported.last().copied().unwrap();
    assert!(last.abs_diff(rate) < rate / 5, "{last} bytes a second were reported instead of {rate}: {reported:?}");
    assert!(rate < LIMIT * 6 / 5, "the disk takes {rate} bytes a second, and not {LIMIT} at most");
    assert!(reported.iter().all(|speed| *speed < 4 * LIMIT), "it was reported as fast at first: {reported:?}");
}

#[test]
fn the_rate_of_a_slow_disk_is_the_speed_that_is_told() {
    let rates = Rates { write_bytes_per_s: LIMIT, queue: 4, ..Rates::default() };
    let Some(slow) = Slow::new(rates, false) else { return };
    let (reported, rate) = slow.reported();
    is_the_rate(&reported, rate);
}

#[test]
fn a_limit_above_the_disk_is_the_speed_that_is_told() {
    if !Path::new(THROTTLE).exists() {
        afflux_scratch::skipped!("the kernel has no throttle of control groups, version 1");
        return;
    }
    let Some(slow) = Slow::new(Rates::default(), true) else { return };
    let (reported, rate) = slow.reported();
    is_the_rate(&reported, rate);
}
