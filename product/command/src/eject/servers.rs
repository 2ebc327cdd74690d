//! Afflux servers among the processes that use a disk.
//!
//! Owns: finding the control socket of a process, having that server write everything, refusing a stopped server.
//! Does not own: the search for processes (`users`), the messages (`control`).
//! Invariants: a request goes only to a program called afflux, and only if the kernel says that this very process
//! listens on the socket.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{Mode, OFlags, open};
use serde_json::json;

use super::users::Process;
use crate::control::messages::ControlReply;
use crate::control::{ControlClient, trust};
use crate::{change, processes, progress};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// Longest wait for the end of a server.
const END_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// In `/proc/net/unix`: the socket has a listener.
const LISTENS: u32 = 0x10000;

/// Whether the process may be a server with data that is not on the disk yet. A server has the directory open that it
/// serves.
pub(super) fn is_server(process: &Process) -> bool {
    process.program == processes::SERVER && process.has_files
}

/// A server that has written everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WrittenServer {
    pub(super) process: Process,
    /// Its mount. It has reported this itself: that is no reason to unmount anything.
    pub(super) mount: Option<PathBuf>,
    /// Whether it ends with its mount.
    pub(super) ends_with_mount: bool,
}

/// Has the process write everything if it is a server. A stopped server is an error: it would never answer.
pub(super) fn drained(process: &Process, as_json: bool) -> Outcome<Option<WrittenServer>> {
    if !is_server(process) {
        return Ok(None);
    }
    if is_stopped(process.pid) {
        let pid = process.pid;
        return Err(Failure::failed(format!(
            "the server (process {pid}) is stopped and may not have written everything: kill -CONT {pid}, then try again"
        )));
    }
    let Some(mut client) = client_of(process.pid) else { return Ok(None) };
    let said = |reply: &ControlReply| {
        if let ControlReply::Progress(now) = reply {
            output::say(json!({
                "server": process.pid, "left_bytes": now.left_bytes, "written_bytes": now.written_bytes,
                "elapsed_ns": now.elapsed_ns,
            }));
        }
    };
    let drained = change::follow_drain(&mut client, as_json.then_some(&said))?;
    if drained.failed.is_empty() {
        return written(process, &mut client).map(Some);
    }
    let first = format!("the server (process {}) could not write everything:", process.pid);
    Err(Failure::failed(progress::unwritten(&first, &drained.failed)))
}

/// The server of a mount, unless it cannot be asked.
pub(super) fn of_mount(mount_point: &Path) -> Option<WrittenServer> {
    processes::servers().into_iter().find_map(|pid| {
        let process = Process { pid, program: processes::SERVER.to_owned(), how: String::new(), has_files: true };
        let is_running = !is_stopped(pid);
        let mut client = client_of(pid).filter(|_| is_running)?;
        written(&process, &mut client).ok().filter(|server| server.mount.as_deref() == Some(mount_point))
    })
}

/// Waits for the end of a server whose mount is gone. It writes the pages of the mount that the kernel cached.
pub(super) fn ended(server: &Process) -> Outcome {
    let start = Instant::now();
    while !processes::has_ended(server.pid) {
        if start.elapsed() > END_MAX {
            let pid = server.pid;
            return Err(Failure::failed(format!(
                "the server (process {pid}) has not ended yet, though its mount is gone: try again later"
            )));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn client_of(pid: u32) -> Option<ControlClient> {
    sockets_of(pid).iter().find_map(|path| connected(pid, path))
}

fn written(process: &Process, client: &mut ControlClient) -> Outcome<WrittenServer> {
    let report = client.report()?;
    let ends_with_mount = report.mount.as_ref() == Some(&report.listen);
    let mount = report.mount.map(PathBuf::from);
    Ok(WrittenServer { process: process.clone(), mount, ends_with_mount })
}

/// Whether a signal or a debugger has stopped the process.
fn is_stopped(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| state.trim_start().starts_with(['T', 't']))
}

/// The paths at which a process listens.
fn sockets_of(pid: u32) -> Vec<PathBuf> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    let listening: HashMap<String, PathBuf> = table.lines().filter_map(listener).collect();
    processes::links(pid).filter_map(|link| listening.get(link.to_str()?).cloned()).collect()
}

/// Socket number and path of a line of `/proc/net/unix`.
fn listener(line: &str) -> Option<(String, PathBuf)> {
    let mut fields = line.split_ascii_whitespace();
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let (inode, path) = (fields.nth(2)?, fields.next()?);
    (flags & LISTENS != 0 && path.starts_with('/')).then(|| (format!("socket:[{inode}]"), PathBuf::from(path)))
}

/// A connection to the process, by a path as the process sees it.
fn connected(pid: u32, path: &Path) -> Option<ControlClient> {
    let inside = Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").ok()?);
    let socket = open(&inside, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let link = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
    let stream = trust::connected_to_process(&link, pid)?;
    ControlClient::over(path, stream).ok()
}

#[cfg(test)]
mod tests;
