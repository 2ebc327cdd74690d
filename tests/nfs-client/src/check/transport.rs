//! Checks of RPC, record marks and MOUNT.
//!
//! Owns: calls in fragments, calls to unknown programs, MOUNT's refusals and offers.
//! Does not own: files.
//! Invariants: those of its parent. After each refusal the connection is used again.

use nfs3_types::nfs3::stable_how;

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand};
use super::target::connect;
use super::work_directory::WorkDirectory;
use crate::connection::{Client, Error, MOUNT, NFS};
use crate::procedures::{packed, write_arguments};
use crate::status::{ACCES, INVAL, NAMETOOLONG, NOENT, NOTDIR};
use crate::wire::Fields;

checks! {
    record_in_fragments: "a call may come in several fragments, some of them empty";
    many_calls_at_once: "calls that are sent before others are answered are all answered, each with its number";
    refusals: "calls of programs, versions and procedures that there are not, and arguments that are none, are refused as RPC says";
    mount_errors: "MNT of a path that is absent, not exported or no directory fails, each with a code that says so";
    mount_flavours: "MNT offers AUTH_SYS, also of a directory below the export, and gives the handle that LOOKUP gives";
    mount_lists: "NULL, DUMP, UMNT, UMNTALL and EXPORT of MOUNT are answered, and EXPORT has what was mounted";
}

fn record_in_fragments(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("pieces")?;
    let data: Vec<u8> = (0..9000_u32).map(|at| (at % 253) as u8).collect();
    for sizes in [&[9000_usize][..], &[1], &[4, 0, 100], &[3, 4001], &[40, 0, 0, 8192]] {
        let arguments = packed(&write_arguments(&file, 0, &data, stable_how::UNSTABLE));
        let (xid, record) = place.client.record(NFS, 7, &arguments);
        let mut rest = &record[4..];
        let mut stream = Vec::new();
        let mut sizes = sizes.iter().cycle();
        // Few enough fragments for servers that limit their number.
        while !rest.is_empty() {
            let size = if stream.len() > 2000 { rest.len() } else { sizes.next().map_or(rest.len(), |size| *size) };
            let size = size.min(rest.len());
            let (piece, after) = rest.split_at(size);
            let last = if after.is_empty() { 1 << 31 } else { 0 };
            stream.extend((size as u32 | last).to_be_bytes());
            stream.extend(piece);
            rest = after;
        }
        place.client.send_raw(&stream)?;
        let reply = place.client.receive().map_err(|error| Failure::Broken(format!("no answer: {error}")))?;
        demand(reply.xid == xid && reply.results.starts_with(&[0; 4]), || format!("{:?}", &reply.results[..4]))?;
    }
    let read = place.client.read(&file, 0, 9000)?;
    demand(read.data == data, || "other bytes were written".to_owned())
}

fn many_calls_at_once(place: &mut WorkDirectory) -> Result<(), Failure> {
    let mut expected: Vec<u32> = Vec::new();
    let mut stream = Vec::new();
    for _ in 0..200 {
        let (xid, record) = place.client.record(NFS, 1, &Fields::default().opaque(&place.directory).0);
        expected.push(xid);
        stream.extend(record);
    }
    place.client.send_raw(&stream)?;
    let mut found = (0..expected.len()).map(|_| Ok(place.client.receive()?.xid)).collect::<Result<Vec<_>, Error>>()?;
    found.sort_unstable();
    expected.sort_unstable();
    demand(found == expected, || "other numbers came back".to_owned())
}

/// The words after the number and the direction in the reply to raw bytes.
fn answer(client: &mut Client, words: &[u32]) -> Result<Vec<u32>, Failure> {
    let mut record = ((words.len() * 4) as u32 | 1 << 31).to_be_bytes().to_vec();
    record.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    client.send_raw(&record)?;
    let reply = client.receive_raw().map_err(|error| Failure::Broken(format!("no answer to {words:?}: {error}")))?;
    let words: Vec<u32> =
        reply.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect();
    Ok(words.get(2..).unwrap_or_default().to_vec())
}

fn refusals(place: &mut WorkDirectory) -> Result<(), Failure> {
    const SYS: [u32; 2] = [0, 0];
    let mut faults = Faults::default();
    let mut tried = |place: &mut WorkDirectory, what: &str, call: &[u32], expected: &[u32]| -> Result<(), Failure> {
        let found = match answer(&mut place.client, call) {
            Ok(found) => format!("{:?}", &found[..found.len().min(expected.len())]),
            Err(failure) => failure.to_string(),
        };
        faults.demand(found == format!("{expected:?}"), || format!("{what}: {found}, not {expected:?}"));
        if place.client.null().is_err() {
            place.client = connect(place.target.nfs)?;
            faults.0.push(format!("{what}: the connection is closed"));
        }
        Ok(())
    };
    let call = |program: u32, version: u32, procedure: u32, rest: &[u32]| -> Vec<u32> {
        [&[77, 0, 2, program, version, procedure], &SYS[..], &[0, 0], rest].concat()
    };
    // Accepted, an empty verifier, then the reason for the failure: 1 program, 2 version, 3 procedure, 4 arguments.
    tried(place, "a program that is not there", &call(300_001, 1, 0, &[]), &[0, 0, 0, 1])?;
    tried(place, "procedure 22", &call(NFS.0, NFS.1, 22, &[]), &[0, 0, 0, 3])?;
    tried(place, "GETATTR without arguments", &call(NFS.0, NFS.1, 1, &[]), &[0, 0, 0, 4])?;
    tried(place, "GETATTR of a handle of 4 GiB", &call(NFS.0, NFS.1, 1, &[u32::MAX, 0]), &[0, 0, 0, 4])?;
    tried(
        place,
        "GETATTR of a handle of 65 bytes",
        &call(NFS.0, NFS.1, 1, &[&[65][..], &[0; 17]].concat()),
        &[0, 0, 0, 4],
    )?;
    tried(place, "version 9 of NFS", &call(NFS.0, 9, 0, &[]), &[0, 0, 0, 2])?;
    // Denied: 0 for the version of RPC, 1 for the credential.
    tried(place, "version 3 of RPC", &[78, 0, 3, NFS.0, NFS.1, 0, 0, 0, 0, 0], &[1, 0, 2, 2])?;
    let unknown = [79, 0, 2, NFS.0, NFS.1, 1, 99, 0, 0, 0, 0];
    tried(place, "credentials of an unknown kind", &unknown, &[1, 1])?;
    faults.end()
}

fn mount_errors(place: &mut WorkDirectory) -> Result<(), Failure> {
    place.file("file")?;
    let base = format!("{}/{}", place.target.export.trim_end_matches('/'), place.name);
    let mut faults = Faults::default();
    let long = format!("{base}/{}", "x".repeat(2000));
    let tries = [
        (format!("{base}/absent"), &[NOENT][..]),
        (format!("{base}/file"), &[NOTDIR]),
        ("/no/such/export".to_owned(), &[NOENT, ACCES]),
        (format!("{base}/../../../../etc"), &[NOENT, ACCES, INVAL]),
        (long, &[NAMETOOLONG, NOENT, ACCES, INVAL]),
    ];
    for (path, allowed) in tries {
        let mut client = connect(place.target.mount)?;
        match client.mount(&path) {
            Err(Error::Refused { .. }) if path.len() > 1024 => {}
            result => faults.expect(&path[..path.len().min(80)], result, allowed)?,
        }
    }
    faults.end()
}

fn mount_flavours(place: &mut WorkDirectory) -> Result<(), Failure> {
    const AUTH_SYS: u32 = 1;
    let path = format!("{}/{}", place.target.export.trim_end_matches('/'), place.name);
    for path in [&place.target.export, &path] {
        let (_, flavours) = connect(place.target.mount)?.mount_with_flavours(path)?;
        demand(flavours.contains(&AUTH_SYS), || format!("{path}: only {flavours:?}"))?;
    }
    let (below, _) = connect(place.target.mount)?.mount_with_flavours(&path)?;
    let (mounted, looked) = (place.attributes(&below)?.fileid, place.attributes(&place.directory.clone())?.fileid);
    demand(mounted == looked, || format!("MNT gives file {mounted}, LOOKUP {looked}"))
}

fn mount_lists(place: &mut WorkDirectory) -> Result<(), Failure> {
    let mut client = connect(place.target.mount)?;
    client.call(MOUNT, 0, &[])?;
    client.mount(&place.target.export)?;
    client.mounts()?;
    let exports = client.exports()?;
    let there = exports.iter().any(|export| export.trim_end_matches('/') == place.target.export.trim_end_matches('/'));
    demand(there, || format!("{} is not among {exports:?}", place.target.export))?;
    client.unmount(&place.target.export)?;
    client.call(MOUNT, 4, &[])?;
    Ok(())
}
