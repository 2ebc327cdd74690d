//! The memory gate: a program maps and dirties twice the memory of its group, through a mount of a slow disk.
//!
//! Reclaim of the group's memory then waits for the server, and the server for the disk. In the second half the server
//! is in the group, too: its own calls of the host reclaim memory that only its answers make free.
//!
//! Owns: the group, the program and its progress, the check of its bytes on the disk.
//! Does not own: the disk (`tests/disk/src/main.rs`), the mount (`mount`), the machine's state (`health`).
//! Invariants: a program that makes no progress for [`STILL_MAX`] hangs. Group, program and disk end with the value.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::health::{self, Messages};
use super::mount::{Built, Mount};
use super::options::Way;
use super::volume::Volume;

/// The group's limit, and twice as much for the program to dirty.
const GROUP_BYTES: u64 = 256 << 20;
const MAPPED_BYTES: u64 = 512 << 20;
/// The server's cache: both have to fit in the group.
const CACHE_BYTES: u64 = 64 << 20;
const DISK_BYTES: u64 = 2 << 30;
const DISK_BYTES_PER_SECOND: u64 = 25_000_000;
/// The longest time without progress. The group holds ten seconds of the disk's work.
const STILL_MAX: Duration = Duration::from_secs(60);
const PAGE_BYTES: u64 = 4096;

/// Dirties every page of a mapping, round after round. In each round it checks what the last one left. It says a line
/// for each MiB, and at the end how many rounds it made.
const PROGRAM: &str = include_str!("../../mounted/memory.py");

/// A control group with a limit on memory.
struct Group(PathBuf);

impl Group {
    fn new() -> Result<Self> {
        let path = Path::new("/sys/fs/cgroup/memory").join(format!("afflux-mounted-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{}: no groups that bound memory", path.display()))?;
        let group = Self(path);
        fs::write(group.0.join("memory.limit_in_bytes"), GROUP_BYTES.to_string()).context("a group's limit")?;
        Ok(group)
    }

    fn add(&self, process: u32) -> Result<()> {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).context("the group")
    }

    /// How often the group ran into its limit.
    fn reclaims(&self) -> u64 {
        let failed = fs::read_to_string(self.0.join("memory.failcnt")).unwrap_or_default();
        failed.trim().parse().unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its programs have ended; the kernel may take a moment.
        let begin = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begin.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A process that ends with the value.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The disk ends with its input; a program that hangs may not end at all.
        let begin = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && begin.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
    }
}

/// The lines of a process, from a thread of their own.
fn lines(child: &mut Child) -> Result<Receiver<String>> {
    let (output, (sender, lines)) = (child.stdout.take().context("its output")?, channel());
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    Ok(lines)
}

/// A slow disk, and the place of its file system.
fn disk(program: &Path, home: &Path) -> Result<(Ending, PathBuf)> {
    let mut command = Command::new(program);
    command.arg(home).args([DISK_BYTES.to_string(), DISK_BYTES_PER_SECOND.to_string()]);
    let mut disk = Ending(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the disk")?);
    let line = lines(&mut disk.0)?.recv_timeout(STILL_MAX).ok().context("no slow disk")?;
    Ok((disk, line.into()))
}

/// Runs the gate, half of the time with the server in the group. Returns whether all was right.
pub(super) fn holds(built: &Built, home: &Path, lasts: Duration) -> Result<bool> {
    let messages = Messages::now()?;
    for with_server in [false, true] {
        let home = home.join(if with_server { "with-server" } else { "alone" });
        fs::create_dir_all(&home)?;
        let (_disk, ext4) = disk(&built.disk, &home)?;
        let outcome = half(built, &home, &ext4, lasts / 2, with_server);
        if let Err(error) = outcome {
            println!("         {error:#}");
            return Ok(false);
        }
    }
    let complaints = messages.complaints_since()?;
    complaints.iter().for_each(|line| println!("         {line}"));
    Ok(complaints.is_empty())
}

fn half(built: &Built, home: &Path, ext4: &Path, lasts: Duration, with_server: bool) -> Result<()> {
    let group = Group::new()?;
    let mut mount = Mount::with_cache(built, home, Way::Fuse, &Volume::directory(ext4), CACHE_BYTES)?;
    if with_server {
        group.add(mount.process())?;
    }
    let file = mount.files().join("mapped");
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\" && exec python3 -c \"$@\""]).arg(group.0.join("cgroup.procs")).arg(PROGRAM);
    command.arg(&file).args([MAPPED_BYTES.to_string(), lasts.as_secs_f64().to_string()]);
    let mut program = Ending(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("python3")?);
    let (rounds, longest) = progress(&mut program.0)?;
    ensure!(program.0.wait()?.success(), "the program found wrong bytes");
    ensure!(group.reclaims() > 0, "the group had memory enough");
    mount.check_running()?;
    let peak = health::check_memory(mount.process(), CACHE_BYTES)?;
    mount.end()?;
    check(&ext4.join("mapped"), rounds)?;
    println!(
        "         {rounds} rounds of {} MiB, the server {} the group; longest time without progress {:.1} s; {} times at the \
         limit; the server's memory at most {} MiB",
        MAPPED_BYTES >> 20,
        if with_server { "in" } else { "outside" },
        longest.as_secs_f64(),
        group.reclaims(),
        peak >> 20
    );
    Ok(())
}

/// The program's rounds, and the longest time between two lines.
fn progress(program: &mut Child) -> Result<(u64, Duration)> {
    let (lines, mut longest) = (lines(program)?, Duration::ZERO);
    let mut rounds = None;
    loop {
        let begin = Instant::now();
        match lines.recv_timeout(STILL_MAX) {
            Ok(line) => rounds = line.parse().ok(),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => bail!("no progress for {STILL_MAX:?}:\n{}", stacks(program.id())),
        }
        longest = longest.max(begin.elapsed());
    }
    Ok((rounds.context("the program ended early")?, longest))
}

/// Where the kernel holds up a process.
fn stacks(process: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("stack")).ok()).collect()
}

/// All bytes of the last round are on the disk.
fn check(path: &Path, rounds: u64) -> Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    ensure!(file.metadata()?.len() == MAPPED_BYTES, "the file on the disk has another size");
    let mut found = [0; 16];
    for page in 0..MAPPED_BYTES / PAGE_BYTES {
        file.read_exact_at(&mut found, page * PAGE_BYTES)?;
        let [number, round] = [0, 8].map(|at| u64::from_le_bytes(found[at..at + 8].try_into().unwrap_or_default()));
        ensure!((number, round) == (page, rounds), "page {page} on the disk is page {number} of round {round}");
    }
    Ok(())
}
