//! The MOUNT program (RFC 1813, appendix I), which gives clients their first handle.
//!
//! Owns: its procedures, and the list of mounts, which is only for people.
//! Does not own: exports and paths (the volume), the exports' paths on the host (`places`).
//! Invariants: the list has at most [`MOUNTS_MAX`] lines, and no code relies on it: a handle is valid whether or not it
//! is in the list.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use afflux_volume::{Caller, Inode, MOUNT_PATH_BYTES_MAX, Platform, VolumeError};

use crate::server::Server;
use crate::status::Status;
use crate::wire::reply::{Draft, Reply};
use crate::wire::rpc;
use crate::wire::xdr::{Reader, XdrError};

/// The names of the procedures by number, as counters.
pub(crate) const PROCEDURES: [&str; 6] =
    ["mount_null", "mount_mnt", "mount_dump", "mount_umnt", "mount_umntall", "mount_export"];
/// Most lines that the list of mounts has; the oldest go first.
pub const MOUNTS_MAX: usize = 256;

/// Versions that are answered. The first two have handles of 32 bytes for NFSv2, which this server lacks; they are for
/// tools that list mounts and exports.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 1..=3;
const VERSION_WITH_HANDLES: u32 = 3;

const MNT: u32 = 1;
const DUMP: u32 = 2;
const UMNT: u32 = 3;
/// Most bytes of a path that are read at all; a path above [`MOUNT_PATH_BYTES_MAX`] is refused by status.
const PATH_BYTES_READ_MAX: usize = 4096;

/// A call of MOUNT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountArguments {
    Null,
    Mount { path: Vec<u8> },
    Dump,
    Unmount { path: Vec<u8> },
    UnmountAll,
    Export,
}

impl MountArguments {
    /// Whether `version` has `procedure`.
    pub(crate) fn known(version: u32, procedure: u32) -> bool {
        (procedure as usize) < PROCEDURES.len() && (procedure != MNT || version == VERSION_WITH_HANDLES)
    }

    /// Reads the arguments of a procedure that is known.
    pub(crate) fn decode(procedure: u32, bytes: &[u8]) -> Result<Self, XdrError> {
        let mut reader = Reader::new(bytes);
        Ok(match procedure {
            0 => Self::Null,
            MNT => Self::Mount { path: reader.opaque(PATH_BYTES_READ_MAX)?.to_vec() },
            DUMP => Self::Dump,
            UMNT => Self::Unmount { path: reader.opaque(PATH_BYTES_READ_MAX)?.to_vec() },
            4 => Self::UnmountAll,
            _ => Self::Export,
        })
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Line {
    client: IpAddr,
    path: Vec<u8>,
}

/// Most bytes of a line in a reply beside its path.
const LINE_BYTES_MAX: usize = 64;

/// Most bytes of data that the reply to a call will have.
pub(crate) fn reply_bytes_max(procedure: u32) -> u32 {
    match procedure {
        DUMP => (MOUNTS_MAX * (LINE_BYTES_MAX + MOUNT_PATH_BYTES_MAX)) as u32,
        _ => 0,
    }
}

/// The clients' mounts, as far as the clients reported them.
#[derive(Default)]
pub(crate) struct Mounts {
    lines: Mutex<VecDeque<Line>>,
}

impl Mounts {
    fn change(&self, change: impl FnOnce(&mut VecDeque<Line>)) {
        change(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn add(&self, client: IpAddr, path: Vec<u8>) {
        let line = Line { client, path };
        self.change(|lines| {
            lines.retain(|known| *known != line);
            if lines.len() == MOUNTS_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        });
    }
}

/// Answers a call of `caller`. A reply with the list of mounts has as many lines as fit into `bytes_max`.
pub(crate) async fn answer<P: Platform>(
    server: Arc<Server<P>>,
    client: IpAddr,
    caller: Caller,
    mut draft: Draft,
    arguments: MountArguments,
    bytes_max: usize,
) -> Reply {
    match arguments {
        MountArguments::Null => {}
        MountArguments::Mount { path } => mount(&server, client, &caller, &mut draft, path).await,
        MountArguments::Dump => dump(&server, &mut draft, bytes_max),
        MountArguments::Unmount { path } => {
            server.mounts.change(|lines| lines.retain(|line| line.client != client || line.path != path));
        }
        MountArguments::UnmountAll => server.mounts.change(|lines| lines.retain(|line| line.client != client)),
        MountArguments::Export => export(&server, &mut draft),
    }
    draft.finish()
}

/// The directory at a mount path: below an export's name, or else at a served path of the host.
async fn found<P: Platform>(server: &Server<P>, caller: &Caller, path: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
    let found = server.volume.mount_by(caller, path).await;
    if !matches!(found, Err(VolumeError::NotFound | VolumeError::NotDirectory)) {
        return found;
    }
    let place = server.places.get().and_then(|places| places.named(Path::new(OsStr::from_bytes(path))));
    match place {
        Some(named) => server.volume.mount_by(caller, named.as_os_str().as_bytes()).await,
        None => found,
    }
}

async fn mount<P: Platform>(server: &Server<P>, client: IpAddr, caller: &Caller, draft: &mut Draft, path: Vec<u8>) {
    match found(server, caller, &path).await.map_err(Status::from) {
        Err(status) => {
            draft.note(status);
            draft.writer.u32(status.mount_code());
        }
        Ok(root) => {
            draft.writer.u32(Status::Ok.mount_code());
            draft.writer.opaque(server.volume.handle(&root).as_bytes());
            draft.writer.u32(rpc::FLAVOURS.len() as u32);
            rpc::FLAVOURS.iter().for_each(|&flavour| draft.writer.u32(flavour));
            server.mounts.add(client, path);
        }
    }
}

fn dump<P: Platform>(server: &Server<P>, draft: &mut Draft, bytes_max: usize) {
    server.mounts.change(|lines| {
        for line in lines.iter() {
            if draft.writer.len() + LINE_BYTES_MAX + line.path.len() > bytes_max {
                break;
            }
            draft.writer.bool(true);
            draft.writer.opaque(line.client.to_string().as_bytes());
            draft.writer.opaque(&line.path);
        }
    });
    draft.writer.bool(false);
}

/// The exports, each without groups, since every client that can reach the port may mount it.
fn export<P: Platform>(server: &Server<P>, draft: &mut Draft) {
    for name in server.volume.exports() {
        draft.writer.bool(true);
        draft.writer.opaque(name.as_bytes());
        draft.writer.bool(false);
    }
    draft.writer.bool(false);
}
