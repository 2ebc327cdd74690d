//! `afflux eject`: one device's dirty pages written out, and when it is safe to unplug.
//!
//! Owns: which file systems are written, the progress, the verdict.
//! Does not own: what is dirty of a device (crate `govern`), how progress looks (`progress`).
//! Invariants: success means that everything written before the call is on the medium, and the device's own cache is
//! flushed. It is called safe only if nothing of it is mounted any more.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use govern::{Disk, Host};
use rustix::fs::{major, minor, stat};
use serde_json::json;

use crate::args;
use crate::control::messages::Progress;
use crate::failure::{Failure, Outcome};
use crate::progress::DrainDisplay;
use crate::{output, units};

/// Between two looks at what is left.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// From when on a rate is one.
const RATE_AFTER: Duration = Duration::from_secs(1);
/// So often all is written before it is said that others keep writing.
const ROUNDS: u32 = 3;
/// What may be dirty again at once though nobody writes: a file system's own.
const OWN_BYTES: u64 = 1 << 20;

pub(crate) fn run(args: &args::Eject) -> Outcome {
    let host = Host::new(Path::new("/"));
    let disk = found(&host, &args.device)?;
    let start = Instant::now();
    let mut mounts = host.mounts_of(&disk.number);
    let mut written_bytes = 0;
    for round in 1.. {
        written_bytes += write_out(&host, &disk, &mounts, start, args.json)?;
        let left_bytes = dirty_bytes(&host, &disk).unwrap_or(0);
        if left_bytes <= OWN_BYTES {
            break;
        }
        if round == ROUNDS {
            let (name, left) = (output::shown(&disk.name), units::data(left_bytes));
            let why = format!("{name} is still written to by others ({left} dirty again): end them, then try again");
            return Err(Failure::failed(why));
        }
    }
    if args.unmount {
        mounts.iter().rev().try_for_each(|place| unmount(&host, &disk, place))?;
        mounts = host.mounts_of(&disk.number);
    }
    flush(&host, &disk)?;
    verdict(args, &disk, &mounts, written_bytes, start.elapsed());
    Ok(())
}

/// The whole disk that is meant.
fn found(host: &Host, named: &str) -> Outcome<Disk> {
    let by_link = std::fs::canonicalize(named).ok().and_then(|path| path.to_str().map(str::to_owned));
    let number = host.whole(named).or_else(|| host.whole(&by_link?)).or_else(|| {
        let number = stat(named).ok().map(|found| format!("{}:{}", major(found.st_dev), minor(found.st_dev)))?;
        host.whole_of_mount(&number)
    });
    let disk = number.filter(|number| !number.starts_with("0:")).and_then(|number| host.disk(&number));
    disk.ok_or_else(|| {
        let name = output::shown(named);
        Failure::failed(format!("'{name}' is no disk, no part of one, and on none: lsblk lists them"))
    })
}

/// Has all file systems on a disk write everything, and shows how far that is; how much it was.
fn write_out(host: &Host, disk: &Disk, mounts: &[PathBuf], start: Instant, as_json: bool) -> Outcome<u64> {
    let first_bytes = dirty_bytes(host, disk);
    let writers: Vec<_> = mounts.iter().cloned().map(writer).collect();
    let mut display = DrainDisplay::new(!as_json, "");
    while writers.iter().any(|(_, writer)| !writer.is_finished()) {
        thread::sleep(LOOK_EVERY);
        let Some((first_bytes, left_bytes)) = first_bytes.zip(dirty_bytes(host, disk)) else { continue };
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        // A moment's rate says nothing of the time that is left.
        let is_early = start.elapsed() < RATE_AFTER;
        let written_bytes = if is_early { 0 } else { first_bytes.saturating_sub(left_bytes) };
        if as_json {
            output::say(json!({"left_bytes": left_bytes, "written_bytes": written_bytes, "elapsed_ns": elapsed_ns}));
        } else {
            display.show(Progress { left_bytes, written_bytes, elapsed_ns });
        }
    }
    display.finish();
    for (place, writer) in writers {
        let written = writer.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")));
        match written {
            Ok(()) => {}
            Err(_) if has_gone(host, disk) => return Err(gone(disk)),
            // Others have unmounted it meanwhile, which writes everything.
            Err(error) if error.kind() == ErrorKind::NotFound && !host.mounts_of(&disk.number).contains(&place) => {}
            Err(error) => {
                let place = output::shown(place.display());
                return Err(Failure::failed(format!("{place}: not everything could be written: {error}")));
            }
        }
    }
    Ok(first_bytes.unwrap_or(0))
}

/// Whether the disk is no more, or another has its number.
fn has_gone(host: &Host, disk: &Disk) -> bool {
    host.disk(&disk.number).is_none_or(|now| now.sequence != disk.sequence)
}

fn gone(disk: &Disk) -> Failure {
    let name = output::shown(&disk.name);
    Failure::failed(format!(
        "{name} went before everything on it was written: what was written to it last may be missing"
    ))
}

/// A thread that has the file system at a place write everything.
fn writer(place: PathBuf) -> (PathBuf, JoinHandle<std::io::Result<()>>) {
    let from = place.clone();
    let writer = thread::spawn(move || Ok(rustix::fs::syncfs(File::open(&from)?)?));
    (place, writer)
}

/// What is dirty of a disk and of what is made from it; nothing where the kernel does not tell.
fn dirty_bytes(host: &Host, disk: &Disk) -> Option<u64> {
    let all = host.numbers_on(&disk.number);
    let known: Vec<u64> = all.iter().filter_map(|number| host.dirty_bytes(number)).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Has the disk empty its own cache.
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

fn unmount(host: &Host, disk: &Disk, place: &Path) -> Outcome {
    let ran = Command::new("umount").arg(place).output();
    let failed = |why: &str| Failure::failed(format!("{}: not unmounted: {why}", output::shown(place.display())));
    let output = ran.map_err(|error| failed(&error.to_string()))?;
    // Others may have been faster.
    if !output.status.success() && host.mounts_of(&disk.number).iter().any(|mounted| mounted == place) {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(())
}

fn verdict(args: &args::Eject, disk: &Disk, mounts: &[PathBuf], written_bytes: u64, took: Duration) {
    if args.json {
        let safe = mounts.is_empty();
        let took_ns = took.as_nanos() as u64;
        let done =
            json!({"device": disk.name, "written": true, "safe": safe, "mounted": mounts, "elapsed_ns": took_ns});
        return output::say(done);
    }
    output::say(words(disk, mounts, written_bytes, took));
}

fn words(disk: &Disk, mounts: &[PathBuf], written_bytes: u64, took: Duration) -> String {
    let name = output::shown(&disk.name);
    let model = disk.model.as_ref().map(|model| format!(" ({})", output::shown(model))).unwrap_or_default();
    let done = match written_bytes {
        0 => format!("Everything on {name}{model} is written."),
        bytes => format!("Everything on {name}{model} is written ({} in {}).", units::data(bytes), units::time(took)),
    };
    if mounts.is_empty() {
        return format!("{done} It is safe to unplug.");
    }
    let places: Vec<String> = mounts.iter().map(|place| output::shown(place.display())).collect();
    format!("{done} It is safe to unplug once it is unmounted: umount {} (or --unmount)", places.join(" "))
}

#[cfg(test)]
mod tests;
