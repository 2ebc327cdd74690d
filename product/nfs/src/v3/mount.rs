//! The MOUNT program (RFC 1813, appendix I), which gives clients their first handle.
//!
//! Owns: the answers to its calls.
//! Does not own: their arguments, the list of mounts (`side_protocols`), exports and paths (the volume).
//! Invariants: a reply has at most as many lines as fit.

use std::net::IpAddr;
use std::sync::Arc;

use afflux_volume::{Caller, MOUNT_PATH_BYTES_MAX, Platform};

use crate::server::Server;
use crate::status::NfsStatus;
use crate::v3::side_protocols::{DUMP, MOUNTS_MAX, MountArguments};
use crate::wire::reply::{Draft, Reply};
use crate::wire::rpc;

/// Most bytes of a line in a reply without its path.
const LINE_BYTES_MAX: usize = 64;

/// Most bytes of data that the reply to a call will have.
pub(crate) fn reply_bytes_max(procedure: u32) -> u32 {
    match procedure {
        DUMP => (MOUNTS_MAX * (LINE_BYTES_MAX + MOUNT_PATH_BYTES_MAX)) as u32,
        _ => 0,
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

async fn mount<P: Platform>(server: &Server<P>, client: IpAddr, caller: &Caller, draft: &mut Draft, path: Vec<u8>) {
    match server.volume.mount_by(caller, &path).await.map_err(NfsStatus::from) {
        Err(status) => {
            draft.note(status);
            draft.writer.u32(status.mount_code());
        }
        Ok(root) => {
            draft.writer.u32(NfsStatus::Ok.mount_code());
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
