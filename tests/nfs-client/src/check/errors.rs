//! Checks of the errors that RFC 1813 names for each procedure, as far as a client can provoke them.
//!
//! Owns: the procedures as a table, tried with handles and names that are wrong in every possible way.
//! Does not own: errors that need a disk of a certain kind (`space`), or another caller (`callers`).
//! Invariants: those of its parent. Where the RFC leaves a choice and servers differ in practice, every answer that a
//! client can handle is allowed.

use nfs3_types::nfs3::{nfstime3, stable_how};

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand, status_of};
use super::target::connect;
use super::work_directory::WorkDirectory;
use crate::connection::{Client, Error};
use crate::procedures::{Change, Creation, Node};
use crate::status::{
    ACCES, BADHANDLE, BADTYPE, EXIST, FBIG, INVAL, ISDIR, NAMETOOLONG, NOENT, NOT_SYNC, NOTDIR, NOTEMPTY, PERM, STALE,
};

/// One procedure, with a handle under test, and a valid file and directory.
type Call = fn(&mut Client, &[u8], &Good) -> Result<(), Error>;

struct Good {
    file: Vec<u8>,
    directory: Vec<u8>,
}

/// The procedures that need a directory.
const OF_DIRECTORIES: &[(&str, Call)] = &[
    ("LOOKUP", |client, object, _| client.lookup(object, b"name").map(drop)),
    ("CREATE", |client, object, _| client.create(object, b"name", Creation::Guarded(Change::default())).map(drop)),
    ("CREATE EXCLUSIVE", |client, object, _| client.create(object, b"name", Creation::Exclusive([7; 8])).map(drop)),
    ("MKDIR", |client, object, _| client.mkdir(object, b"name", Change::default()).map(drop)),
    ("SYMLINK", |client, object, _| client.symlink(object, b"name", b"target", Change::default()).map(drop)),
    ("MKNOD", |client, object, _| client.mknod(object, b"name", Node::Fifo(Change::default())).map(drop)),
    ("REMOVE", |client, object, _| client.remove(object, b"name").map(drop)),
    ("RMDIR", |client, object, _| client.rmdir(object, b"name").map(drop)),
    ("RENAME from", |client, object, good| client.rename((object, b"name"), (&good.directory, b"new")).map(drop)),
    ("RENAME to", |client, object, good| client.rename((&good.directory, b"file"), (object, b"new")).map(drop)),
    ("LINK to", |client, object, good| client.link(&good.file, object, b"new").map(drop)),
    ("READDIR", |client, object, _| client.readdir(object, 0, [0; 8], 4096).map(drop)),
    ("READDIRPLUS", |client, object, _| client.readdirplus(object, 0, [0; 8], 4096, 4096).map(drop)),
];

/// The procedures that take any object, or an object that is not a directory.
const OF_OBJECTS: &[(&str, Call)] = &[
    ("GETATTR", |client, object, _| client.getattr(object).map(drop)),
    ("SETATTR", |client, object, _| {
        client.setattr(object, Change { mode: Some(0o700), ..Change::default() }, None).map(drop)
    }),
    ("ACCESS", |client, object, _| client.access(object, 0x3f).map(drop)),
    ("READLINK", |client, object, _| client.readlink(object).map(drop)),
    ("READ", |client, object, _| client.read(object, 0, 512).map(drop)),
    ("WRITE", |client, object, _| client.write(object, 0, b"data", stable_how::UNSTABLE).map(drop)),
    ("WRITE FILE_SYNC", |client, object, _| client.write(object, 0, b"data", stable_how::FILE_SYNC).map(drop)),
    ("LINK", |client, object, good| client.link(object, &good.directory, b"new").map(drop)),
    ("FSSTAT", |client, object, _| client.fsstat(object).map(drop)),
    ("FSINFO", |client, object, _| client.fsinfo(object).map(drop)),
    ("PATHCONF", |client, object, _| client.pathconf(object).map(drop)),
    ("COMMIT", |client, object, _| client.commit(object, 0, 0).map(drop)),
];

fn good(place: &mut WorkDirectory) -> Result<Good, Failure> {
    Ok(Good { file: place.file("file")?, directory: place.directory.clone() })
}

checks! {
    no_such_name: "a call for an absent name fails with NOENT";
    bad_handle: "bytes that are no handle are refused by each procedure, as bad or stale, and never taken for an object";
    gone_directory: "the handle of a directory that was removed is stale for each procedure";
    not_a_directory: "a file, a symbolic link or a pipe where a directory is wanted is NOTDIR";
    not_a_file: "READ, WRITE, a size and READLINK are refused where the object has none of that";
    name_too_long: "a name of 255 bytes is one, a longer one is NAMETOOLONG for each procedure and nothing is made";
    names_that_are_none: "no name is empty, has a slash or a zero byte: each procedure refuses it and nothing is made anywhere";
    name_taken: "a call that makes a taken name fails with EXIST and changes nothing";
    renames_that_cannot_be: "a RENAME over what has entries, over another kind, or of a directory into itself fails and changes nothing";
    removes_that_cannot_be: "REMOVE takes no directory, RMDIR nothing else and none that has entries";
    dots: "\".\" is the directory and \"..\" its parent, and neither is made, removed or renamed";
    guard: "a SETATTR whose guard is not the change time is NOT_SYNC and changes nothing; with the right one it is done";
    bad_type: "MKNOD of a kind that has a procedure of its own is BADTYPE, of none that exists is refused";
    too_large_a_size: "a size that no file can have is refused, and the file stays as it is";
}

fn bad_handle(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    let flip = |at: usize| {
        let mut handle = good.file.clone();
        handle[at] ^= 0x10;
        handle
    };
    let shorter = good.file[..good.file.len() - 1].to_vec();
    let handles: Vec<(&str, Vec<u8>)> = vec![
        ("no bytes", vec![]),
        ("one byte", vec![1]),
        ("zeros", vec![0; 32]),
        ("ones", vec![0xff; 64]),
        ("one byte less", shorter),
        ("another first byte", flip(0)),
        ("another byte in the middle", flip(good.file.len() / 2)),
        ("another last byte", flip(good.file.len() - 1)),
    ];
    let mut faults = Faults::default();
    for (name, call) in OF_OBJECTS.iter().chain(OF_DIRECTORIES) {
        for (what, handle) in &handles {
            // A server may close the connection after bytes that are no valid arguments: that is no answer.
            let result = call(&mut place.client, handle, &good);
            faults.expect(&format!("{name} with {what}"), result, &[BADHANDLE, STALE])?;
        }
    }
    faults.end()
}

fn gone_directory(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    let gone = place.subdirectory("gone")?;
    place.client.rmdir(&place.directory, b"gone")?;
    let mut faults = Faults::default();
    let any = |name: &str| !["READLINK", "READ", "WRITE", "WRITE FILE_SYNC", "LINK", "COMMIT"].contains(&name);
    for (name, call) in OF_DIRECTORIES.iter().chain(OF_OBJECTS).filter(|(name, _)| any(name)) {
        faults.expect(name, call(&mut place.client, &gone, &good), &[STALE])?;
    }
    faults.end()
}

fn not_a_directory(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.client.symlink(&good.directory, b"link", b".", Change::default())?;
    place.client.mknod(&good.directory, b"pipe", Node::Fifo(Change::default()))?;
    let mut faults = Faults::default();
    for kind in ["file", "link", "pipe"] {
        let (object, _) = place.client.lookup(&good.directory, kind.as_bytes())?;
        for (name, call) in OF_DIRECTORIES {
            faults.expect(&format!("{name} in a {kind}"), call(&mut place.client, &object, &good), &[NOTDIR])?;
        }
    }
    faults.end()
}

fn not_a_file(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.subdirectory("directory")?;
    place.client.symlink(&good.directory, b"link", b"file", Change::default())?;
    place.client.mknod(&good.directory, b"pipe", Node::Fifo(Change::default()))?;
    let mut faults = Faults::default();
    let size = Change { size: Some(7), ..Change::default() };
    for (kind, allowed) in [("directory", &[ISDIR, INVAL][..]), ("link", &[INVAL]), ("pipe", &[INVAL])] {
        let (object, _) = place.client.lookup(&good.directory, kind.as_bytes())?;
        let client = &mut place.client;
        faults.expect(&format!("READ of a {kind}"), client.read(&object, 0, 512), allowed)?;
        let written = client.write(&object, 0, b"data", stable_how::UNSTABLE);
        faults.expect(&format!("WRITE to a {kind}"), written, allowed)?;
        faults.expect(&format!("size of a {kind}"), client.setattr(&object, size, None), allowed)?;
        if kind != "link" {
            faults.expect(&format!("READLINK of a {kind}"), client.readlink(&object), &[INVAL])?;
        }
    }
    faults.expect("READLINK of a file", place.client.readlink(&good.file), &[INVAL])?;
    let linked = place.client.link(&good.directory, &good.directory, b"hard");
    faults.expect("LINK of a directory", linked, &[PERM, ISDIR, INVAL, ACCES])?;
    faults.end()
}

/// The procedures that take a name, with the name under test; the caller removes any object created.
type Named = fn(&mut Client, &Good, &[u8]) -> Result<(), Error>;

/// The procedures that create a name.
const MAKING: &[(&str, Named)] = &[
    ("CREATE UNCHECKED", |client, good, name| {
        client.create(&good.directory, name, Creation::Unchecked(Change::default())).map(drop)
    }),
    ("CREATE GUARDED", |client, good, name| {
        client.create(&good.directory, name, Creation::Guarded(Change::default())).map(drop)
    }),
    ("CREATE EXCLUSIVE", |client, good, name| {
        client.create(&good.directory, name, Creation::Exclusive([3; 8])).map(drop)
    }),
    ("MKDIR", |client, good, name| client.mkdir(&good.directory, name, Change::default()).map(drop)),
    ("SYMLINK", |client, good, name| client.symlink(&good.directory, name, b"x", Change::default()).map(drop)),
    ("MKNOD", |client, good, name| client.mknod(&good.directory, name, Node::Fifo(Change::default())).map(drop)),
    ("LINK", |client, good, name| client.link(&good.file, &good.directory, name).map(drop)),
    ("RENAME to", |client, good, name| client.rename((&good.directory, b"spare"), (&good.directory, name)).map(drop)),
];

/// The procedures that look up a name.
const LOOKING: &[(&str, Named)] = &[
    ("LOOKUP", |client, good, name| client.lookup(&good.directory, name).map(drop)),
    ("REMOVE", |client, good, name| client.remove(&good.directory, name).map(drop)),
    ("RMDIR", |client, good, name| client.rmdir(&good.directory, name).map(drop)),
    ("RENAME from", |client, good, name| client.rename((&good.directory, name), (&good.directory, b"new")).map(drop)),
];

fn name_too_long(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.file("spare")?;
    let longest = place.client.pathconf(&good.directory)?.name_max as usize;
    demand(longest == 255, || format!("PATHCONF tells names of {longest} bytes"))?;
    let mut faults = Faults::default();
    for (name, call) in MAKING.iter().chain(LOOKING) {
        for bytes in [256, 257, 1024, 4000] {
            let result = call(&mut place.client, &good, &vec![b'n'; bytes]);
            faults.expect(&format!("{name}, {bytes} bytes"), result, &[NAMETOOLONG])?;
        }
    }
    let full = vec![b'n'; 255];
    for (name, call) in MAKING {
        place.file("spare")?;
        faults.expect(&format!("{name}, 255 bytes"), call(&mut place.client, &good, &full), &[0])?;
        if place.client.remove(&good.directory, &full).is_err() {
            place.client.rmdir(&good.directory, &full)?;
        }
    }
    let too_long = place.client.symlink(&good.directory, b"link", &vec![b't'; 5000], Change::default());
    faults.expect("SYMLINK to 5000 bytes", too_long, &[NAMETOOLONG, INVAL])?;
    faults.end()
}

fn names_that_are_none(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.file("spare")?;
    place.subdirectory("sub")?;
    let mut before = place.names(&good.directory)?;
    before.sort();
    let mut faults = Faults::default();
    for (name, call) in MAKING.iter().chain(LOOKING) {
        for bad in [&b""[..], b"sub/x", b"../x", b"/", b"a\0b", b"sub/.", b"spare\0"] {
            let text = format!("{name} of {:?}", String::from_utf8_lossy(bad));
            let answered = match call(&mut place.client, &good, bad) {
                // A refusal by RPC (garbage arguments) is an answer, too.
                Err(Error::Refused { .. }) => Ok(1),
                result => status_of(result),
            }?;
            faults.demand(answered != 0, || format!("{text}: done"));
        }
    }
    let mut after = place.names(&good.directory)?;
    after.sort();
    faults.demand(before == after, || format!("the directory has {after:?}"));
    faults.end()
}

fn name_taken(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.subdirectory("directory")?;
    place.client.symlink(&good.directory, b"link", b"file", Change::default())?;
    let mut faults = Faults::default();
    for (name, call) in MAKING {
        for taken in ["file", "directory", "link"] {
            let allowed: &[u32] = match (*name, taken) {
                ("RENAME to", _) | ("CREATE UNCHECKED", "file") => continue,
                // A client that finds a directory proceeds with it; a client that finds a link follows it.
                ("CREATE UNCHECKED", _) => &[EXIST, ISDIR, INVAL],
                _ => &[EXIST],
            };
            faults.expect(
                &format!("{name} of a {taken}"),
                call(&mut place.client, &good, taken.as_bytes()),
                allowed,
            )?;
        }
    }
    let mut names = place.names(&good.directory)?;
    names.sort();
    faults.demand(names == [&b"directory"[..], b"file", b"link"], || format!("left are {names:?}"));
    faults.end()
}

fn no_such_name(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    let mut faults = Faults::default();
    for (name, call) in LOOKING {
        faults.expect(name, call(&mut place.client, &good, b"absent"), &[NOENT])?;
    }
    faults.end()
}

fn renames_that_cannot_be(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    let directory = good.directory.clone();
    place.subdirectory("empty")?;
    let full = place.subdirectory("full")?;
    place.client.create_empty(&full, b"entry")?;
    let mut faults = Faults::default();
    let mut rename = |from: &[u8], (into, to): (&[u8], &[u8]), allowed: &[u32]| {
        let text = format!("{} to {}", String::from_utf8_lossy(from), String::from_utf8_lossy(to));
        faults.expect(&text, place.client.rename((&directory, from), (into, to)), allowed)
    };
    rename(b"empty", (&directory, b"full"), &[NOTEMPTY, EXIST])?;
    rename(b"empty", (&directory, b"file"), &[NOTDIR, EXIST])?;
    rename(b"file", (&directory, b"empty"), &[ISDIR, EXIST])?;
    rename(b"full", (&full, b"below"), &[INVAL])?;
    rename(b"absent", (&directory, b"file"), &[NOENT])?;
    rename(b"file", (&directory, b"file"), &[0])?;
    rename(b"full", (&directory, b"empty"), &[0])?;
    let mut names = place.names(&directory)?;
    names.sort();
    faults.demand(names == [&b"empty"[..], b"file"], || format!("left are {names:?}"));
    faults.end()
}

fn removes_that_cannot_be(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    let directory = good.directory.clone();
    let full = place.subdirectory("full")?;
    place.client.create_empty(&full, b"entry")?;
    place.client.symlink(&directory, b"link", b"full", Change::default())?;
    let mut faults = Faults::default();
    faults.expect("REMOVE of a directory", place.client.remove(&directory, b"full"), &[ISDIR, PERM, INVAL, ACCES])?;
    faults.expect("RMDIR of a file", place.client.rmdir(&directory, b"file"), &[NOTDIR])?;
    faults.expect("RMDIR of a link", place.client.rmdir(&directory, b"link"), &[NOTDIR])?;
    faults.expect("RMDIR of one with entries", place.client.rmdir(&directory, b"full"), &[NOTEMPTY, EXIST])?;
    faults.expect("REMOVE of a link", place.client.remove(&directory, b"link"), &[0])?;
    faults.expect("REMOVE in it", place.client.remove(&full, b"entry"), &[0])?;
    faults.expect("RMDIR of an empty one", place.client.rmdir(&directory, b"full"), &[0])?;
    faults.end()
}

fn dots(place: &mut WorkDirectory) -> Result<(), Failure> {
    let good = good(place)?;
    place.file("spare")?;
    let below = place.subdirectory("below")?;
    let mut faults = Faults::default();
    let (own, parent) = (place.attributes(&below)?.fileid, place.attributes(&good.directory)?.fileid);
    for (name, expected) in [(&b"."[..], own), (b"..", parent)] {
        let (handle, _) = place.client.lookup(&below, name)?;
        let found = place.attributes(&handle)?.fileid;
        faults.demand(found == expected, || format!("LOOKUP of {name:?} is {found}, not {expected}"));
    }
    let in_below = Good { directory: below, ..good };
    let removing = LOOKING.iter().filter(|(name, _)| *name != "LOOKUP");
    for (name, call) in MAKING.iter().filter(|(name, _)| *name != "RENAME to").chain(removing) {
        for dot in [&b"."[..], b".."] {
            let result = call(&mut place.client, &in_below, dot);
            let allowed = [EXIST, INVAL, ISDIR, NOTEMPTY, ACCES, PERM];
            faults.expect(&format!("{name} of {}", String::from_utf8_lossy(dot)), result, &allowed)?;
        }
    }
    for dot in [&b"."[..], b".."] {
        let renamed = place.client.rename((&place.directory, b"spare"), (&in_below.directory, dot));
        faults.expect("RENAME to dots", renamed, &[EXIST, INVAL, ISDIR, NOTEMPTY, ACCES, PERM])?;
    }
    faults.end()
}

fn guard(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("guarded")?;
    place.fill(&file, 100)?;
    place.client.commit(&file, 0, 0)?;
    let before = place.attributes(&file)?;
    let mut faults = Faults::default();
    let cut = Change { size: Some(0), mode: Some(0o600), ..Change::default() };
    let time = before.ctime;
    let (later, nudged) =
        (nfstime3 { seconds: time.seconds + 1, ..time }, nfstime3 { nseconds: time.nseconds ^ 1, ..time });
    for wrong in [nfstime3::default(), later, nudged] {
        faults.expect("a stale guard", place.client.setattr(&file, cut, Some(wrong)), &[NOT_SYNC])?;
    }
    let after = place.attributes(&file)?;
    faults.demand((after.size, after.mode) == (100, before.mode), || format!("it was applied: {after:?}"));
    let time = after.ctime;
    faults.expect("the right guard", place.client.setattr(&file, cut, Some(time)), &[0])?;
    let done = place.attributes(&file)?;
    faults.demand(done.size == 0 && done.mode & 0o777 == 0o600, || format!("it was not applied: {done:?}"));
    faults.end()
}

fn bad_type(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    let mut faults = Faults::default();
    for (what, kind) in [("a file", 1), ("a directory", 2), ("a symbolic link", 5)] {
        let result = place.client.mknod(&directory, b"node", Node::Other(kind));
        faults.expect(&format!("MKNOD of {what}"), result, &[BADTYPE])?;
    }
    for kind in [0, 8, u32::MAX] {
        match place.client.mknod(&directory, b"node", Node::Other(kind)) {
            Err(Error::Refused { .. } | Error::Status { .. }) => {}
            Err(error) => faults.0.push(format!("MKNOD of kind {kind}: {error}")),
            Ok(_) => faults.0.push(format!("MKNOD of kind {kind}: done")),
        }
    }
    // If a server closes the connection because of it, the rest uses a new one.
    if place.client.null().is_err() {
        place.client = connect(place.target.nfs)?;
        faults.0.push("the connection was closed".to_owned());
    }
    faults.end()
}

fn too_large_a_size(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("sized")?;
    place.fill(&file, 10)?;
    let mut faults = Faults::default();
    for size in [1 << 63, u64::MAX] {
        let change = Change { size: Some(size), ..Change::default() };
        faults.expect(&format!("size {size}"), place.client.setattr(&file, change, None), &[FBIG, INVAL])?;
    }
    let found = place.attributes(&file)?.size;
    faults.demand(found == 10, || format!("the size is {found}"));
    faults.end()
}
