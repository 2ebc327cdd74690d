//! Checks of names, handles and duplicate calls.
//!
//! Owns: mounting, special files, duplicates over a new connection, handles of removed objects.
//! Does not own: the contents of files.
//! Invariants: those of its parent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use nfs3_types::nfs3::{nfstime3, stable_how};

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand, status_of};
use super::target::connect;
use super::work_directory::WorkDirectory;
use crate::connection::{NFS, User};
use crate::procedures::{Change, Creation, Node, TimeChange};
use crate::status::{EXIST, STALE};
use crate::wire::{Fields, Results};

checks! {
    mount_through_a_symlink: "a path below the export may go through a symbolic link that stays inside";
    device_nodes: "a user who is not root makes no nodes of disks; pipes it may";
    remove_repeated: "a REMOVE that is sent again over a new connection gets the first answer";
    exclusive_repeated: "an EXCLUSIVE CREATE with the same verifier finds its file, with another it fails";
    stale_handle: "the handle of a removed file is stale, for each procedure, and not absent";
    same_number_other_call: "another call with a number that was used before is another call: two clients of a host may number alike";
    repeated_while_running: "a call that is sent again before it was answered is run once, and both are answered alike";
    exclusive_whole_verifier: "all 64 bits of an EXCLUSIVE CREATE's verifier count, and looking at the file takes none of them away";
    create_with_times: "a CREATE may bring times of the client's, as Windows' does, and the file has them";
    create_of_what_is_there: "an UNCHECKED CREATE takes the file that is there, empties it only if asked to, and keeps its mode";
    links_are_counted: "LINK, REMOVE and RENAME over a name count a file's names, and its change time moves";
    symlink_says_what_it_was_told: "READLINK gives the bytes that SYMLINK took, of any kind, up to 1,023 of them";
    links_beside_other_changes: "a client is told its own last changes of a file, names by one and modes by another at the same time";
}

fn mount_through_a_symlink(place: &mut WorkDirectory) -> Result<(), Failure> {
    place.client.mkdir(&place.directory, b"real", Change { mode: Some(0o755), ..Change::default() })?;
    place.client.symlink(&place.directory, b"link", b"real", Change::default())?;
    let path = format!("{}/{}/link", place.target.export.trim_end_matches('/'), place.name);
    let mounted =
        connect(place.target.mount)?.mount(&path).map_err(|error| Failure::Broken(format!("{path}: {error}")))?;
    let (real, link) = (place.client.lookup(&place.directory, b"real")?.0, place.attributes(&mounted)?);
    let real = place.attributes(&real)?;
    demand(link.fileid == real.fileid, || format!("{path} is {}, the directory {}", link.fileid, real.fileid))
}

fn device_nodes(place: &mut WorkDirectory) -> Result<(), Failure> {
    let change = Change { mode: Some(0o600), ..Change::default() };
    let directory = place.directory.clone();
    place.client.setattr(&directory, Change { mode: Some(0o777), ..Change::default() }, None)?;
    // On a server that acts as one user for everybody, every caller is the same user.
    place.client.set_user(Some(User { uid: 4711, gid: 4711 }));
    let status = status_of(place.client.mknod(&directory, b"disk", Node::Block(change, (7, 200))))?;
    demand(status != 0, || "a block device was made".to_owned())?;
    let status = status_of(place.client.mknod(&directory, b"memory", Node::Character(change, (1, 1))))?;
    demand(status != 0, || "a character device was made".to_owned())?;
    let status = status_of(place.client.mknod(&directory, b"pipe", Node::Fifo(change)))?;
    demand(status == 0, || format!("status {status} for a pipe"))
}

fn remove_repeated(place: &mut WorkDirectory) -> Result<(), Failure> {
    place.file("once")?;
    let xid = place.client.next_xid();
    place.client.remove(&place.directory, b"once")?;
    let mut again = place.another()?;
    again.set_next_xid(xid);
    let status = status_of(again.remove(&place.directory, b"once"))?;
    demand(status == 0, || format!("status {status} for the second"))
}

fn exclusive_repeated(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    place.client.create(&directory, b"mine", Creation::Exclusive(*b"verifier"))?;
    let same = status_of(place.another()?.create(&directory, b"mine", Creation::Exclusive(*b"verifier")))?;
    demand(same == 0, || format!("status {same} for the same verifier"))?;
    let other = status_of(place.another()?.create(&directory, b"mine", Creation::Exclusive(*b"another!")))?;
    demand(other == EXIST, || format!("status {other} for another verifier"))
}

fn stale_handle(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("gone")?;
    place.client.remove(&place.directory, b"gone")?;
    let client = &mut place.client;
    let all = [
        ("GETATTR", status_of(client.getattr(&file))?),
        ("SETATTR", status_of(client.setattr(&file, Change::default(), None))?),
        ("ACCESS", status_of(client.access(&file, 1))?),
        ("READ", status_of(client.read(&file, 0, 512))?),
        ("WRITE", status_of(client.write(&file, 0, &[1; 16], stable_how::UNSTABLE))?),
        ("COMMIT", status_of(client.commit(&file, 0, 0))?),
    ];
    let wrong: Vec<_> = all.iter().filter(|(_, status)| *status != STALE).collect();
    demand(wrong.is_empty(), || format!("not {STALE}: {wrong:?}"))
}

fn same_number_other_call(place: &mut WorkDirectory) -> Result<(), Failure> {
    place.file("one")?;
    place.file("two")?;
    let xid = place.client.next_xid();
    place.client.remove(&place.directory, b"one")?;
    let mut other = place.another()?;
    other.set_next_xid(xid);
    let status = status_of(other.remove(&place.directory, b"two"))?;
    let directory = place.directory.clone();
    let left = place.names(&directory)?;
    demand(status == 0 && left.is_empty(), || format!("status {status}, and left is {left:?}"))
}

fn repeated_while_running(place: &mut WorkDirectory) -> Result<(), Failure> {
    const MKDIR: u32 = 9;
    for round in 0..16 {
        let name = format!("d{round}");
        // A name, and sattr3 that changes nothing: six words of zero.
        let arguments = Fields::default().opaque(&place.directory).opaque(name.as_bytes()).fixed(&[0; 24]);
        let mut other = place.another()?;
        other.set_next_xid(place.client.next_xid());
        place.client.send(NFS, MKDIR, &arguments.0)?;
        other.send(NFS, MKDIR, &arguments.0)?;
        let statuses = [place.client.receive()?, other.receive()?].map(|reply| Results(&reply.results).u32());
        demand(statuses == [Ok(0), Ok(0)], || format!("round {round}: {statuses:?}"))?;
    }
    Ok(())
}

fn exclusive_whole_verifier(place: &mut WorkDirectory) -> Result<(), Failure> {
    let verifier = [0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88];
    let directory = place.directory.clone();
    let made = place.client.create(&directory, b"mine", Creation::Exclusive(verifier))?;
    let (file, _) = place.client.lookup(&directory, b"mine")?;
    demand(made.handle.as_ref().is_none_or(|handle| *handle == file), || "CREATE and LOOKUP differ".to_owned())?;
    place.client.read(&file, 0, 4096)?;
    place.client.access(&file, 0x3f)?;
    let mut faults = Faults::default();
    for bit in 0..64 {
        let mut other = verifier;
        other[bit / 8] ^= 1 << (bit % 8);
        let again = place.client.create(&directory, b"mine", Creation::Exclusive(other));
        faults.expect(&format!("bit {bit} of the verifier is another"), again, &[EXIST])?;
    }
    let again = place.another()?.create(&directory, b"mine", Creation::Exclusive(verifier));
    faults.expect("the same verifier after a READ", again, &[0])?;
    faults.end()
}

fn create_with_times(place: &mut WorkDirectory) -> Result<(), Failure> {
    let (atime, mtime) =
        (nfstime3 { seconds: 1_000_000, nseconds: 5_000 }, nfstime3 { seconds: 2_000_000, nseconds: 7_000 });
    let change =
        Change { mode: Some(0o640), atime: TimeChange::To(atime), mtime: TimeChange::To(mtime), ..Change::default() };
    let mut faults = Faults::default();
    for (name, how) in [("unchecked", Creation::Unchecked(change)), ("guarded", Creation::Guarded(change))] {
        place.client.create(&place.directory, name.as_bytes(), how)?;
        let (file, _) = place.client.lookup(&place.directory, name.as_bytes())?;
        let found = place.attributes(&file)?;
        faults.demand((found.atime, found.mtime) == (atime, mtime), || {
            format!("{name}: atime {:?}, mtime {:?}", found.atime, found.mtime)
        });
        faults.demand(found.mode & 0o7777 == 0o640, || format!("{name}: mode {:o}", found.mode));
    }
    faults.end()
}

fn create_of_what_is_there(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("there")?;
    place.fill(&file, 5000)?;
    let directory = place.directory.clone();
    let change = Change { mode: Some(0o666), ..Change::default() };
    place.client.create(&directory, b"there", Creation::Unchecked(change))?;
    let kept = place.attributes(&file)?;
    demand(kept.size == 5000, || format!("size {} after a CREATE that names none", kept.size))?;
    place.client.create(&directory, b"there", Creation::Unchecked(Change { size: Some(0), ..change }))?;
    let (again, _) = place.client.lookup(&directory, b"there")?;
    let emptied = place.attributes(&again)?;
    demand(emptied.size == 0 && emptied.fileid == kept.fileid, || {
        format!("size {}, file {} instead of {}", emptied.size, emptied.fileid, kept.fileid)
    })
}

fn links_are_counted(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    let file = place.file("a")?;
    place.file("other")?;
    let before = place.attributes(&file)?;
    let links = |place: &mut WorkDirectory, what: &str, expected: u32| -> Result<(), Failure> {
        let found = place.attributes(&file)?.nlink;
        demand(found == expected, || format!("{found} links after {what}, not {expected}"))
    };
    place.client.link(&file, &directory, b"b")?;
    links(place, "LINK", 2)?;
    let after = place.attributes(&file)?;
    demand(SystemTime::from(after.ctime) >= before.ctime.into(), || "LINK took the change time back".to_owned())?;
    place.client.rename((&directory, b"a"), (&directory, b"b"))?;
    links(place, "RENAME of one name of a file to another of it, which does nothing", 2)?;
    place.client.lookup(&directory, b"a")?;
    place.client.rename((&directory, b"other"), (&directory, b"b"))?;
    links(place, "RENAME over one of its names", 1)?;
    place.client.link(&file, &directory, b"c")?;
    place.client.remove(&directory, b"a")?;
    links(place, "REMOVE", 1)
}

fn symlink_says_what_it_was_told(place: &mut WorkDirectory) -> Result<(), Failure> {
    let long = vec![b'x'; 1023];
    let targets: [&[u8]; 5] = [b"a", b"../.././/x/", b"/absolute", b"caf\xe9 \xff\x01", &long];
    for (at, target) in targets.into_iter().enumerate() {
        let name = format!("l{at}");
        place.client.symlink(&place.directory, name.as_bytes(), target, Change::default())?;
        let (link, attributes) = place.client.lookup(&place.directory, name.as_bytes())?;
        let found = place.client.readlink(&link)?;
        demand(found == target, || format!("{found:?} instead of {target:?}"))?;
        let told = attributes.map_or((5, target.len() as u64), |told| (told.type_ as u32, told.size));
        demand(told == (5, target.len() as u64), || format!("kind and size of a link: {told:?}"))?;
    }
    Ok(())
}

fn links_beside_other_changes(place: &mut WorkDirectory) -> Result<(), Failure> {
    const ROUNDS: u32 = 200;
    let directory = place.directory.clone();
    let file = place.file("shared")?;
    let mut other = place.another()?;
    let done = AtomicBool::new(false);
    let changes_modes = || -> Result<(), Failure> {
        let mut round = 0;
        while !done.load(Ordering::Relaxed) {
            round += 1;
            let mode = 0o600 | (round % 0o100);
            other.setattr(&file, Change { mode: Some(mode), ..Change::default() }, None)?;
            let found = other.getattr(&file)?.mode & 0o7777;
            demand(found == mode, || format!("round {round}: mode {found:o} after it was set to {mode:o}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let modes = scope.spawn(changes_modes);
        let links = (0..ROUNDS).try_for_each(|round| -> Result<(), Failure> {
            place.client.link(&file, &directory, b"second")?;
            let found = place.client.getattr(&file)?.nlink;
            demand(found == 2, || format!("round {round}: {found} links after LINK"))?;
            place.client.remove(&directory, b"second")?;
            let found = place.client.getattr(&file)?.nlink;
            demand(found == 1, || format!("round {round}: {found} links after REMOVE"))
        });
        done.store(true, Ordering::Relaxed);
        links.and(modes.join().unwrap_or(Ok(())))
    })
}
