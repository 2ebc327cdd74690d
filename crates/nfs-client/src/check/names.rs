//! Checks of names, handles and calls that come twice.
//!
//! Owns: mounting, special files, duplicates over a new connection, handles of what is gone.
//! Does not own: what files contain.
//! Invariants: as its parent's.

use super::{Check, Failure, Place, connect, demand, status_of};
use crate::procedures::{Change, Creation, Node};
use crate::results::Stability;

/// NFS3ERR_STALE.
const STALE: u32 = 70;

pub(super) const MOUNT_THROUGH_A_SYMLINK: Check = Check {
    name: "mount-through-a-symlink",
    rule: "a path below the export may go through a symbolic link that stays inside",
    run: mount_through_a_symlink,
};

fn mount_through_a_symlink(place: &mut Place) -> Result<(), Failure> {
    place.client.mkdir(&place.directory, b"real", Change { mode: Some(0o755), ..Change::default() })?;
    place.client.symlink(&place.directory, b"link", b"real", Change::default())?;
    let path = format!("{}/{}/link", place.target.export.trim_end_matches('/'), place.name);
    let mounted =
        connect(place.target.mount)?.mount(&path).map_err(|error| Failure::Broken(format!("{path}: {error}")))?;
    let (real, link) = (place.client.lookup(&place.directory, b"real")?.0, place.attributes(&mounted)?);
    let real = place.attributes(&real)?;
    demand(link.fileid == real.fileid, || format!("{path} is {}, the directory {}", link.fileid, real.fileid))
}

pub(super) const DEVICE_NODES: Check = Check {
    name: "device-nodes",
    rule: "a client makes no nodes of the server's disks; pipes it may",
    run: device_nodes,
};

fn device_nodes(place: &mut Place) -> Result<(), Failure> {
    let change = Change { mode: Some(0o600), ..Change::default() };
    let directory = place.directory.clone();
    let status = status_of(place.client.mknod(&directory, b"disk", Node::Block(change, (7, 200))))?;
    demand(status != 0, || "a block device was made".to_owned())?;
    let status = status_of(place.client.mknod(&directory, b"memory", Node::Character(change, (1, 1))))?;
    demand(status != 0, || "a character device was made".to_owned())?;
    let status = status_of(place.client.mknod(&directory, b"pipe", Node::Fifo(change)))?;
    demand(status == 0, || format!("status {status} for a pipe"))
}

pub(super) const REMOVE_REPEATED: Check = Check {
    name: "remove-repeated",
    rule: "a REMOVE that is sent again over a new connection gets the first answer",
    run: remove_repeated,
};

fn remove_repeated(place: &mut Place) -> Result<(), Failure> {
    place.file("once")?;
    let xid = place.client.next_xid();
    place.client.remove(&place.directory, b"once")?;
    let mut again = place.another()?;
    again.set_next_xid(xid);
    let status = status_of(again.remove(&place.directory, b"once"))?;
    demand(status == 0, || format!("status {status} for the second"))
}

pub(super) const EXCLUSIVE_REPEATED: Check = Check {
    name: "exclusive-repeated",
    rule: "an EXCLUSIVE CREATE with the same verifier finds its file, with another it fails",
    run: exclusive_repeated,
};

fn exclusive_repeated(place: &mut Place) -> Result<(), Failure> {
    const EXIST: u32 = 17;
    let directory = place.directory.clone();
    place.client.create(&directory, b"mine", Creation::Exclusive(*b"verifier"))?;
    let same = status_of(place.another()?.create(&directory, b"mine", Creation::Exclusive(*b"verifier")))?;
    demand(same == 0, || format!("status {same} for the same verifier"))?;
    let other = status_of(place.another()?.create(&directory, b"mine", Creation::Exclusive(*b"another!")))?;
    demand(other == EXIST, || format!("status {other} for another verifier"))
}

pub(super) const STALE_HANDLE: Check = Check {
    name: "stale-handle",
    rule: "the handle of a removed file is stale, for each procedure, and not absent",
    run: stale_handle,
};

fn stale_handle(place: &mut Place) -> Result<(), Failure> {
    let file = place.file("gone")?;
    place.client.remove(&place.directory, b"gone")?;
    let client = &mut place.client;
    let all = [
        ("GETATTR", status_of(client.getattr(&file))?),
        ("SETATTR", status_of(client.setattr(&file, Change::default(), None))?),
        ("ACCESS", status_of(client.access(&file, 1))?),
        ("READ", status_of(client.read(&file, 0, 512))?),
        ("WRITE", status_of(client.write(&file, 0, &[1; 16], Stability::Unstable))?),
        ("COMMIT", status_of(client.commit(&file, 0, 0))?),
    ];
    let wrong: Vec<_> = all.iter().filter(|(_, status)| *status != STALE).collect();
    demand(wrong.is_empty(), || format!("not {STALE}: {wrong:?}"))
}
