//! Checks that need a special file system: full, read-only, another than the export's, with a file of many names.
//!
//! Owns: the failures there, and the recovery from them.
//! Does not own: creating such file systems, which needs root on the server's host.
//! Invariants: those of its parent. A check empties the file system that it has filled.

use std::path::Path;

use nfs3_types::nfs3::stable_how;

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand, status_of};
use super::target::connect;
use super::work_directory::WorkDirectory;
use crate::procedures::{Change, Creation, Node};
use crate::results::Handle;
use crate::status::{MLINK, NOSPC, ROFS, XDEV};

/// The file with as many names as ext4 allows.
const LINKED: &str = "linked";

/// Creates the files of the export `small` in a directory on the host.
pub fn make_links(directory: &Path) -> std::io::Result<()> {
    const LINKS_MAX: u32 = 70_000;
    let (names, file) = (directory.join("names"), directory.join(LINKED));
    std::fs::create_dir(&names)?;
    std::fs::write(&file, b"of many names")?;
    for at in 0..LINKS_MAX {
        match std::fs::hard_link(&file, names.join(at.to_string())) {
            Err(error) if error.kind() == std::io::ErrorKind::TooManyLinks => return Ok(()),
            other => other?,
        }
    }
    Err(std::io::Error::other("this file system lets a file have any number of names"))
}

fn mounted(place: &WorkDirectory, export: Option<&String>, what: &'static str) -> Result<Handle, Failure> {
    let export = export.ok_or(Failure::Missing(what))?;
    Ok(connect(place.target.mount)?.mount(export)?)
}

fn small(place: &WorkDirectory) -> Result<Handle, Failure> {
    mounted(place, place.target.more.small.as_ref(), "a small export")
}

checks! {
    read_only: "a change of a read-only file system fails with ROFS; other calls work";
    no_space: "where there is no room WRITE, COMMIT or CREATE say so; committed bytes are there, and with room all goes on";
    too_many_links: "a file that has as many names as it can have gets no other: MLINK";
    other_file_system: "RENAME and LINK to another file system are XDEV and change nothing";
}

fn read_only(place: &mut WorkDirectory) -> Result<(), Failure> {
    let root = mounted(place, place.target.more.read_only.as_ref(), "a read-only export")?;
    let client = &mut place.client;
    let (file, _) = client.lookup(&root, b"file")?;
    let mut faults = Faults::default();
    let rofs = &[ROFS];
    let change = Change { mode: Some(0o600), ..Change::default() };
    faults.expect("SETATTR", client.setattr(&file, change, None), rofs)?;
    faults.expect(
        "SETATTR of a size",
        client.setattr(&file, Change { size: Some(0), ..Change::default() }, None),
        rofs,
    )?;
    faults.expect("WRITE", client.write(&file, 0, b"data", stable_how::UNSTABLE), rofs)?;
    faults.expect("WRITE FILE_SYNC", client.write(&file, 0, b"data", stable_how::FILE_SYNC), rofs)?;
    faults.expect("CREATE", client.create(&root, b"new", Creation::Guarded(Change::default())), rofs)?;
    faults.expect("MKDIR", client.mkdir(&root, b"new", Change::default()), rofs)?;
    faults.expect("SYMLINK", client.symlink(&root, b"new", b"x", Change::default()), rofs)?;
    faults.expect("MKNOD", client.mknod(&root, b"new", Node::Fifo(Change::default())), rofs)?;
    faults.expect("REMOVE", client.remove(&root, b"file"), rofs)?;
    faults.expect("RMDIR", client.rmdir(&root, b"directory"), rofs)?;
    faults.expect("RENAME", client.rename((&root, b"file"), (&root, b"new")), rofs)?;
    faults.expect("LINK", client.link(&file, &root, b"new"), rofs)?;
    faults.expect("GETATTR", client.getattr(&file), &[0])?;
    faults.expect("READ", client.read(&file, 0, 100), &[0])?;
    faults.expect("READDIR", client.readdir(&root, 0, [0; 8], 4096), &[0])?;
    let granted = client.access(&file, 0x3f)?.access;
    faults.demand(granted & 0x0c == 0 && granted & 1 == 1, || format!("ACCESS grants {granted:#x}"));
    faults.end()
}

fn no_space(place: &mut WorkDirectory) -> Result<(), Failure> {
    const PIECE: u64 = 256 << 10;
    const PIECES_MAX: u64 = 1024;
    let root = small(place)?;
    let client = &mut place.client;
    let file = client.create_empty(&root, b"filling")?;
    let mut committed = 0;
    let mut told = None;
    for at in 0..PIECES_MAX {
        let bytes = [at as u8 + 1; PIECE as usize];
        let end = client.write_all(&file, at * PIECE, &bytes, 64 << 10, 4);
        match status_of(end)? {
            0 => committed = at + 1,
            status => {
                told = Some(status);
                break;
            }
        }
    }
    let mut faults = Faults::default();
    faults.demand(told == Some(NOSPC), || format!("the file system is full: {told:?} told, not {NOSPC}"));
    for at in 0..committed {
        let read = client.read_all(&file, at * PIECE, PIECE as usize, 64 << 10, 4)?;
        let whole = read.len() == PIECE as usize && read.iter().all(|byte| *byte == at as u8 + 1);
        faults.demand(whole, || format!("piece {at} of {committed} that were committed is another"));
    }
    // The last blocks go to a growing directory.
    let long = |at: u32| format!("{at:0>250}");
    let mut made = 0;
    let refused = loop {
        let created = client.create(&root, long(made).as_bytes(), Creation::Guarded(Change::default()));
        match status_of(created)? {
            0 if made < 20_000 => made += 1,
            status => break status,
        }
    };
    faults.demand(refused == NOSPC, || format!("CREATE {made}: status {refused}, not {NOSPC}"));
    client.remove(&root, b"filling")?;
    for at in 0..made {
        client.remove(&root, long(at).as_bytes())?;
    }
    let after = client.create_empty(&root, b"after")?;
    client.write_all(&after, 0, &[1; 100_000], 32 << 10, 2)?;
    client.remove(&root, b"after")?;
    faults.end()
}

fn too_many_links(place: &mut WorkDirectory) -> Result<(), Failure> {
    let root = small(place)?;
    let (file, _) = place.client.lookup(&root, LINKED.as_bytes())?;
    let mut faults = Faults::default();
    faults.expect("LINK", place.client.link(&file, &root, b"one-more"), &[MLINK])?;
    faults.end()
}

fn other_file_system(place: &mut WorkDirectory) -> Result<(), Failure> {
    let root = small(place)?;
    let directory = place.directory.clone();
    let file = place.file("here")?;
    let mut faults = Faults::default();
    faults.expect("RENAME", place.client.rename((&directory, b"here"), (&root, b"there")), &[XDEV])?;
    faults.expect("LINK", place.client.link(&file, &root, b"there"), &[XDEV])?;
    let (one, other) = (place.attributes(&file)?.fsid, place.attributes(&root)?.fsid);
    demand(one != other, || format!("two file systems have one fsid, {one:#x}"))?;
    faults.end()
}
