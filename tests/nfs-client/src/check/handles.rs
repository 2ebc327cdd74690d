//! Checks of the identities of objects.
//!
//! Owns: handles over renames, file numbers, the root's parent.
//! Does not own: invalid handles (`errors`); handles across a restart, which need the server's host.
//! Invariants: those of its parent.

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand};
use super::work_directory::WorkDirectory;

checks! {
    root_has_no_parent: "\"..\" of an export's root leads nowhere but to the root";
    handle_after_a_rename: "a handle stays good while the object has a name, whichever: clients rename what they have open and removed";
    file_numbers: "a file's number is not 0, its own, and the same in GETATTR, LOOKUP, READDIR and READDIRPLUS, by each of its names";
}

fn root_has_no_parent(place: &mut WorkDirectory) -> Result<(), Failure> {
    let root = place.root.clone();
    let own = place.attributes(&root)?;
    for name in [&b".."[..], b"."] {
        let (handle, _) = place.client.lookup(&root, name)?;
        let found = place.attributes(&handle)?;
        demand((found.fsid, found.fileid) == (own.fsid, own.fileid), || {
            format!("{:?} of the root is file {}, not {}", String::from_utf8_lossy(name), found.fileid, own.fileid)
        })?;
    }
    Ok(())
}

fn handle_after_a_rename(place: &mut WorkDirectory) -> Result<(), Failure> {
    const BYTES: usize = 100_000;
    let directory = place.directory.clone();
    let (one, two) = (place.subdirectory("one")?, place.subdirectory("two")?);
    let file = place.client.create_empty(&one, b"file")?;
    place.fill(&file, BYTES)?;
    let readable = |place: &mut WorkDirectory, after: &str| -> Result<(), Failure> {
        let read = place.client.read(&file, BYTES as u64 - 10, 10);
        let read = read.map_err(|error| Failure::Broken(format!("after {after}: {error}")))?;
        demand(read.data == [0x5a; 10], || format!("after {after}: {:?}", read.data))
    };
    place.client.rename((&one, b"file"), (&one, b".nfs0001"))?;
    readable(place, "a rename in its directory")?;
    place.client.rename((&one, b".nfs0001"), (&two, b"file"))?;
    readable(place, "a rename to another directory")?;
    place.client.rename((&directory, b"two"), (&one, b"deeper"))?;
    readable(place, "a rename of its directory")?;
    place.client.link(&file, &directory, b"second")?;
    place.client.remove(&two, b"file")?;
    readable(place, "the removal of one of two names")
}

fn file_numbers(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    let mut faults = Faults::default();
    let mut known = Vec::new();
    for at in 0..10 {
        let name = format!("f{at}");
        let file = place.file(&name)?;
        let number = place.attributes(&file)?.fileid;
        faults.demand(number != 0, || format!("{name} has number 0"));
        known.push((name, number));
    }
    place.client.rename((&directory, b"f0"), (&directory, b"renamed"))?;
    known[0].0 = "renamed".to_owned();
    let plain = place.client.readdir(&directory, 0, [0; 8], 32 << 10)?.entries;
    let plus = place.client.readdirplus(&directory, 0, [0; 8], 32 << 10, 64 << 10)?.entries;
    for (name, number) in &known {
        let looked = place.client.lookup(&directory, name.as_bytes())?.1.map_or(*number, |told| told.fileid);
        faults.demand(looked == *number, || format!("LOOKUP of {name}: {looked}, not {number}"));
        for (kind, entries) in [("READDIR", &plain), ("READDIRPLUS", &plus)] {
            let entry = entries.iter().find(|entry| entry.name == name.as_bytes());
            let told = entry.map(|entry| (entry.fileid, entry.attributes.as_ref().map_or(*number, |told| told.fileid)));
            faults.demand(told == Some((*number, *number)), || format!("{kind} of {name}: {told:?}, not {number}"));
        }
    }
    known.sort_by_key(|(_, number)| *number);
    faults.demand(known.windows(2).all(|pair| pair[0].1 != pair[1].1), || format!("two have one number: {known:?}"));
    let (own, parent) = (place.attributes(&directory)?.fileid, place.attributes(&place.root.clone())?.fileid);
    for (name, number) in [(&b"."[..], own), (b"..", parent)] {
        let told = plain.iter().find(|entry| entry.name == name).map_or(number, |entry| entry.fileid);
        faults.demand(told == number, || format!("{name:?} is listed as {told}, and is {number}"));
    }
    faults.end()
}
