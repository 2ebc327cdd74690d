//! `afflux eject`: writes out one device's dirty pages, and says when it is safe to unplug.
//!
//! Owns: the choice of the file systems to write, the progress, the verdict.
//! Does not own: the count of a device's dirty bytes (crate `govern`), the search for its users (`users`), servers
//! with dirty pages of it (`servers`) and their mounts (`users`), the display of progress (`progress`).
//! Invariants: success means that everything written before the call is on the medium, and the device's own cache is
//! flushed. The disk is called safe only if none of its file systems is mounted any more, and no process has any of its
//! files open. The kernel must have no claim on the disk either.

mod servers;
mod users;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use afflux_govern::{Disk, Host};
use rustix::fs::{major, minor, stat};
use serde_json::json;

use self::servers::WrittenServer;
use self::users::{DiskUsers, FileSystem, Process, SoughtDisk};
use crate::control::messages::Progress;
use crate::eject::users::KIND;
use crate::progress::DrainDisplay;
use crate::{args, processes};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};

/// Between two checks of the remaining bytes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Shortest time over which a rate is shown.
const RATE_AFTER: Duration = Duration::from_secs(1);
/// Rounds of writing before the command reports that others go on writing.
const ROUNDS: u32 = 3;
/// The kernel closes files, and gives up its claim on a disk, a moment after the last user ends.
const CLAIM_MAX: Duration = Duration::from_secs(2);
const UNMOUNTS_MAX: usize = 16;
/// Most processes that an error names.
const NAMED_MAX: usize = 10;
/// Bytes that may be dirty again at once though nobody writes: a file system's own metadata.
const OWN_BYTES: u64 = 1 << 20;

pub(crate) fn run(args: &args::Eject) -> Outcome {
    let host = Host::new(Path::new("/"));
    let disk = found(&host, &args.device)?;
    let start = Instant::now();
    let mut drained = Vec::new();
    for process in SoughtDisk::new(&host, &disk).users().processes {
        drained.extend(servers::drained(&process, args.json)?);
    }
    let mut written_bytes = written_out(&host, &disk, start, args.json)?;
    let mut sought = SoughtDisk::new(&host, &disk);
    let mut serving = unused(&disk, sought.users(), &drained)?;
    if args.unmount {
        if let Some(server) = serving.iter().find(|server| !server.ends_with_mount) {
            return Err(Failure::failed(in_use(&disk, true, std::slice::from_ref(&server.process), &[])));
        }
        if !sought.own_points().is_empty() {
            unmount_own(&sought, &serving)?;
            serving.clear();
            // The kernel held pages of mappings until then.
            written_bytes += written_out(&host, &disk, start, args.json)?;
            sought = SoughtDisk::new(&host, &disk);
        }
        unmount_all(&host, &disk)?;
    }
    flush(&host, &disk)?;
    let points = [sought.own_points(), host.mounts_of(&disk.number)].concat();
    if points.is_empty() && serving.is_empty() {
        unclaimed(&disk, &sought)?;
    }
    verdict(args, &disk, &points, &serving, written_bytes, start.elapsed())
}

/// Has the file systems of a disk write everything, until nothing remains. Returns the bytes written.
fn written_out(host: &Host, disk: &Disk, start: Instant, as_json: bool) -> Outcome<u64> {
    let mut written_bytes = 0;
    for round in 1.. {
        written_bytes += write_out(host, disk, &SoughtDisk::new(host, disk).file_systems(), start, as_json)?;
        let left_bytes = dirty_bytes(host, disk).unwrap_or(0);
        if left_bytes <= OWN_BYTES {
            break;
        }
        if round == ROUNDS {
            let (name, left) = (output::shown(&disk.name), units::data(left_bytes));
            let why = format!(
                "{name} is still being written by other programs ({left} dirty again): end them, then try again"
            );
            return Err(Failure::failed(why));
        }
    }
    Ok(written_bytes)
}

/// Unmounts all mounts of `afflux mount` that stand on the disk, and waits until their servers have ended.
fn unmount_own(sought: &SoughtDisk<'_>, serving: &[WrittenServer]) -> Outcome {
    for point in sought.own_points() {
        try_umount(&point, &[])?.map_err(|why| not_unmounted(&point, &why))?;
    }
    serving.iter().try_for_each(|server| servers::ended(&server.process))
}

/// Unmounts the file systems of a disk. One may be mounted at several mount points, one over another; an automounter
/// may mount it again.
fn unmount_all(host: &Host, disk: &Disk) -> Outcome {
    for _ in 0..UNMOUNTS_MAX {
        let places = host.mounts_of(&disk.number);
        if places.is_empty() {
            break;
        }
        places.iter().rev().try_for_each(|mount_point| unmount(host, disk, mount_point))?;
    }
    Ok(())
}

/// The servers that have written everything and still serve the disk. Refuses if anything else uses it.
fn unused(disk: &Disk, users: DiskUsers, drained: &[WrittenServer]) -> Outcome<Vec<WrittenServer>> {
    let is = |server: &WrittenServer, process: &Process| server.process.pid == process.pid;
    let serves = |server: &&WrittenServer| users.processes.iter().any(|process| is(server, process));
    let serving = drained.iter().filter(serves).cloned().collect();
    let is_other = |process: &&Process| !drained.iter().any(|server| is(server, process));
    let others: Vec<Process> = users.processes.iter().filter(is_other).cloned().collect();
    if !others.is_empty() || !users.kernel.is_empty() {
        let is_written = !others.iter().any(servers::is_server);
        return Err(Failure::failed(in_use(disk, is_written, &others, &users.kernel)));
    }
    if users.some_unseen {
        let name = output::shown(&disk.name);
        return Err(Failure::failed(format!(
            "everything on {name} is written, but only root can see whether other users' programs use it: \
             sudo afflux eject {name}"
        )));
    }
    Ok(serving)
}

/// The refusal of a disk in use. Unless `is_written`, one of the processes is a server that could not be asked to
/// write.
fn in_use(disk: &Disk, is_written: bool, processes: &[Process], kernel: &[String]) -> String {
    let name = output::shown(&disk.name);
    let mut text = match is_written {
        true => format!("everything on {name} is written, but it is not safe to unplug, since it is in use:"),
        false => format!(
            "{name} is not safe to unplug: it is in use, and a server of it could not be asked to write what its \
             clients have written:"
        ),
    };
    for process in processes.iter().take(NAMED_MAX) {
        let (program, how) = (output::shown(&process.program), output::shown(&process.how));
        text.push_str(&format!("\n  process {} ({program}) {how}", process.pid));
    }
    if processes.len() > NAMED_MAX {
        text.push_str(&format!("\n  and {} more processes", processes.len() - NAMED_MAX));
    }
    kernel.iter().for_each(|what| text.push_str(&format!("\n  {}", output::shown(what))));
    text.push_str("\nEnd that, then try again.");
    text
}

/// Refuses if the kernel itself claims the disk, or a process has opened it since.
fn unclaimed(disk: &Disk, sought: &SoughtDisk<'_>) -> Outcome {
    let start = Instant::now();
    loop {
        let claimed = sought.claimed();
        if claimed.is_empty() {
            return unused(disk, sought.users(), &[]).map(drop);
        }
        if start.elapsed() > CLAIM_MAX {
            let why = "is claimed in the kernel (by a mount that no process shows, for example)";
            let kernel: Vec<String> = claimed.iter().map(|node| format!("{node} {why}")).collect();
            return Err(Failure::failed(in_use(disk, true, &[], &kernel)));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The whole disk that `named` refers to.
fn found(host: &Host, named: &str) -> Outcome<Disk> {
    let own = || users::disk_behind(host, Path::new(named));
    let by_link = || std::fs::canonicalize(named).ok().and_then(|path| path.to_str().map(str::to_owned));
    // A mount is looked for first: its server may hang.
    let number = host.whole(named).or_else(own).or_else(|| host.whole(&by_link()?)).or_else(|| {
        let number = stat(named).ok().map(|found| format!("{}:{}", major(found.st_dev), minor(found.st_dev)))?;
        host.whole_of_mount(&number)
    });
    let disk = number.filter(|number| !number.starts_with("0:")).and_then(|number| host.disk(&number));
    disk.ok_or_else(|| {
        let name = output::shown(named);
        Failure::failed(format!("'{name}' is not a disk, a partition or a file on one: lsblk lists them"))
    })
}

/// Has all file systems on a disk write everything, and shows the progress. Returns the bytes written.
fn write_out(host: &Host, disk: &Disk, mounts: &[FileSystem], start: Instant, as_json: bool) -> Outcome<u64> {
    let first_bytes = dirty_bytes(host, disk);
    let writers: Vec<_> = mounts.iter().map(writer).collect::<Outcome<_>>()?;
    let mut display = DrainDisplay::new(!as_json, "");
    while writers.iter().any(|(_, writer)| !writer.is_finished()) {
        thread::sleep(LOOK_EVERY);
        let Some((first_bytes, left_bytes)) = first_bytes.zip(dirty_bytes(host, disk)) else { continue };
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        // A rate over a shorter time would not predict the remaining time.
        let is_early = start.elapsed() < RATE_AFTER;
        let written_bytes = if is_early { 0 } else { first_bytes.saturating_sub(left_bytes) };
        if as_json {
            output::say(json!({"left_bytes": left_bytes, "written_bytes": written_bytes, "elapsed_ns": elapsed_ns}));
        } else {
            display.show(Progress { left_bytes, written_bytes, elapsed_ns });
        }
    }
    display.finish();
    for (mount_point, writer) in writers {
        let written = writer.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")));
        match written {
            Ok(()) => {}
            Err(_) if has_gone(host, disk) => return Err(gone(disk)),
            // Another program has unmounted it meanwhile, which writes everything.
            Err(error)
                if error.kind() == ErrorKind::NotFound && !host.mounts_of(&disk.number).contains(&mount_point) => {}
            Err(error) => {
                let mount_point = output::shown(mount_point.display());
                return Err(Failure::failed(format!("{mount_point}: not everything could be written: {error}")));
            }
        }
    }
    Ok(first_bytes.unwrap_or(0))
}

/// Whether the disk is gone, or another one has its number.
fn has_gone(host: &Host, disk: &Disk) -> bool {
    host.disk(&disk.number).is_none_or(|now| now.sequence != disk.sequence)
}

fn gone(disk: &Disk) -> Failure {
    let name = output::shown(&disk.name);
    Failure::failed(format!(
        "{name} went before everything on it was written: the last data written to it may be missing"
    ))
}

/// Starts a thread that has the file system at a mount point write everything.
fn writer(of: &FileSystem) -> Outcome<(PathBuf, JoinHandle<std::io::Result<()>>)> {
    let Some(path) = of.path.clone() else {
        let mount_point = output::shown(of.mount_point.display());
        return Err(Failure::failed(format!(
            "the server of the mount over {mount_point} is gone, and hides the disk: umount {mount_point}, then try again"
        )));
    };
    let writer = thread::spawn(move || Ok(rustix::fs::syncfs(File::open(&path)?)?));
    Ok((of.mount_point.clone(), writer))
}

/// Dirty bytes of a disk and of the devices made from it; none if the kernel does not report them.
fn dirty_bytes(host: &Host, disk: &Disk) -> Option<u64> {
    let all = host.numbers_on(&disk.number);
    let known: Vec<u64> = all.iter().filter_map(|number| host.dirty_bytes(number)).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Has the disk flush its own cache.
fn flush(host: &Host, disk: &Disk) -> Outcome {
    let node = Path::new("/dev").join(&disk.name);
    let flushed = File::open(&node).and_then(|node| node.sync_all());
    flushed.map_err(|error| {
        if has_gone(host, disk) {
            return gone(disk);
        }
        let why = format!("{}: its own cache could not be flushed: {error}", output::shown(node.display()));
        if rustix::process::geteuid().is_root() {
            return Failure::failed(why);
        }
        Failure::failed(format!("{why} (run as root: sudo afflux eject {})", output::shown(&disk.name)))
    })
}

fn unmount(host: &Host, disk: &Disk, mount_point: &Path) -> Outcome {
    let start = Instant::now();
    while let Err(why) = try_umount(mount_point, &[])? {
        // Another program may have unmounted it first.
        if !host.mounts_of(&disk.number).iter().any(|mounted| mounted == mount_point) {
            break;
        }
        // The kernel may not yet have closed the files of a program that has just ended.
        if start.elapsed() > CLAIM_MAX {
            return Err(not_unmounted(mount_point, &why));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn not_unmounted(mount_point: &Path, why: &str) -> Failure {
    Failure::failed(format!("{}: not unmounted: {why}", output::shown(mount_point.display())))
}

/// `afflux umount`: the end of one mount, with the progress of its writes. The helper of umount(8) calls it. On success
/// the mount is gone, and its server has written everything unless it could not be asked. A server of the mount alone
/// has ended by then.
pub(crate) fn umount(args: &args::Umount) -> Outcome {
    let mount_point: PathBuf = std::path::absolute(&args.point).map_err(Failure::failed)?.components().collect();
    let shown = output::shown(mount_point.display());
    let mounts = Host::new(Path::new("/")).mounts();
    if !mounts.iter().any(|mount| mount.kind == KIND && mount.mount_point == mount_point) {
        return Err(Failure::failed(format!("{shown} is no mount of `afflux mount`")));
    }
    let server = servers::of_mount(&mount_point);
    if let Some(server) = &server {
        servers::drained(&server.process, false)?;
    }
    // Without a further helper: this is the helper.
    let flags = if args.lazy { &["-i", "-l"][..] } else { &["-i"] };
    try_umount(&mount_point, flags)?
        .map_err(|why| Failure::failed(format!("{}{}", output::shown(why), used_by(&mount_point))))?;
    match server.filter(|server| server.ends_with_mount && !args.lazy) {
        Some(server) => servers::ended(&server.process),
        None => Ok(()),
    }
}

/// Names the programs that use files of a mount, as far as this user may see. Empty if no program is seen.
fn used_by(mount_point: &Path) -> String {
    let uses = |pid: &u32| {
        let of_process = ["cwd", "root", "exe"].map(|name| fs::read_link(format!("/proc/{pid}/{name}")).ok());
        of_process.into_iter().flatten().chain(processes::links(*pid)).any(|path| path.starts_with(mount_point))
    };
    let named = |pid| format!("{} (process {pid})", output::shown(processes::program(pid)));
    let all: Vec<String> = processes::all().filter(uses).take(NAMED_MAX).map(named).collect();
    if all.is_empty() { String::new() } else { format!(" It is used by {}.", all.join(", ")) }
}

/// Runs umount(8), and returns its refusal. Fails if the program cannot be started: another try would not help.
fn try_umount(mount_point: &Path, flags: &[&str]) -> Outcome<Result<(), String>> {
    let ran = Command::new("umount").args(flags).arg(mount_point).output();
    let ended = ran.map_err(|error| not_unmounted(mount_point, &format!("umount(8) cannot be started: {error}")))?;
    let refused = || String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Ok(if ended.status.success() { Ok(()) } else { Err(refused()) })
}

/// Reports that the disk is safe. Fails with the remaining steps if it is not safe yet.
fn verdict(
    args: &args::Eject,
    disk: &Disk,
    mounts: &[PathBuf],
    serving: &[WrittenServer],
    written_bytes: u64,
    took: Duration,
) -> Outcome {
    let (is_safe, words) = (mounts.is_empty() && serving.is_empty(), words(disk, mounts, serving, written_bytes, took));
    if args.json {
        let took_ns = took.as_nanos() as u64;
        let servers: Vec<u32> = serving.iter().map(|server| server.process.pid).collect();
        let done = json!({
            "device": disk.name, "written": true, "safe": is_safe, "mounted": mounts, "served_by": servers,
            "elapsed_ns": took_ns,
        });
        output::say(done);
    }
    match is_safe {
        true if args.json => Ok(()),
        true => {
            output::say(words);
            Ok(())
        }
        false => Err(Failure::failed(words)),
    }
}

fn words(disk: &Disk, mounts: &[PathBuf], serving: &[WrittenServer], written_bytes: u64, took: Duration) -> String {
    let name = output::shown(&disk.name);
    let model = output::bracketed(disk.model.as_ref());
    let done = match written_bytes {
        0 => format!("Everything on {name}{model} is written."),
        bytes => format!("Everything on {name}{model} is written ({} in {}).", units::data(bytes), units::time(took)),
    };
    if mounts.is_empty() && serving.is_empty() {
        return format!("{done} It is safe to unplug.");
    }
    let of_own = |mount_point: &PathBuf| serving.iter().find(|server| server.mount.as_ref() == Some(mount_point));
    // A server of a mount alone ends with the mount. Another server unmounts its mount at its end.
    let stays =
        |server: &&WrittenServer| !(server.ends_with_mount && server.mount.iter().any(|it| mounts.contains(it)));
    let ends = serving.iter().filter(stays).map(|WrittenServer { process, .. }| {
        format!("{} (process {}) has ended", output::shown(&process.program), process.pid)
    });
    let places = mounts.iter().filter(|mount_point| of_own(mount_point).is_none_or(|server| server.ends_with_mount));
    let places: Vec<String> = places.map(|mount_point| output::shown(mount_point.display())).collect();
    let unmounted =
        (!places.is_empty()).then(|| format!("it is unmounted: umount {} (or --unmount)", places.join(" ")));
    let steps: Vec<String> = ends.chain(unmounted).collect();
    format!("{done} It is safe to unplug once {}", steps.join(" and "))
}

#[cfg(test)]
mod tests;
