//! Checks of READ, ACCESS, FSINFO, FSSTAT and PATHCONF.
//!
//! Owns: reads at and past the end, in holes, above the limits; the plausibility of the limits.
//! Does not own: writing (`writes`).
//! Invariants: those of its parent.

use nfs3_types::nfs3::stable_how;

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand};
use super::work_directory::WorkDirectory;
use crate::connection::Error;
use crate::procedures::Change;
use crate::status::{FBIG, INVAL};

checks! {
    read_across_the_end: "a READ across a file's end has the bytes up to it, says so, and past it has none and is no error";
    read_more_than_told: "a READ of more than rtmax gives less and is no error: the client asks again for the rest";
    holes_and_cuts: "bytes that were never written, or were cut off and come again, are zero";
    limits_make_sense: "what FSINFO, FSSTAT and PATHCONF tell can be used as it is";
    access_grants_what_is_asked: "ACCESS grants no bit that was not asked for, and those that there are";
}

fn read_across_the_end(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("short")?;
    let bytes: Vec<u8> = (0..10_001_u32).map(|at| (at * 7 % 251) as u8).collect();
    place.client.write(&file, 0, &bytes, stable_how::UNSTABLE)?;
    let end = bytes.len() as u64;
    let mut faults = Faults::default();
    for (offset, count) in [
        (0, 20_000_u32),
        (0, 10_001),
        (0, 10_000),
        (9_000, 1_001),
        (9_000, 1_002),
        (end - 1, 1),
        (end, 1),
        (end + 1, 100),
        (1 << 40, 4096),
        (u64::MAX - 5000, 4096),
    ] {
        let read = match place.client.read(&file, offset, count) {
            Ok(read) => read,
            // No file can have bytes there.
            Err(Error::Status { status: INVAL | FBIG, .. }) if offset > 1 << 62 => continue,
            Err(error) => {
                faults.0.push(format!("{count} at {offset}: {error}"));
                continue;
            }
        };
        let from = (offset.min(end)) as usize;
        let expected = &bytes[from..bytes.len().min(from.saturating_add(count as usize))];
        faults.demand(read.data == expected, || format!("{count} at {offset}: {} bytes, or others", read.data.len()));
        let at_end = offset.saturating_add(u64::from(count)) >= end;
        faults.demand(read.end_of_file == at_end, || format!("{count} at {offset}: eof is {}", read.end_of_file));
    }
    faults.end()
}

fn read_more_than_told(place: &mut WorkDirectory) -> Result<(), Failure> {
    let told = place.client.fsinfo(&place.directory)?.rtmax;
    let file = place.file("long")?;
    place.client.setattr(&file, Change { size: Some(u64::from(told) * 4), ..Change::default() }, None)?;
    for count in [told, told + 1, told.saturating_mul(2), u32::MAX] {
        let read = place.client.read(&file, 0, count).map_err(|error| Failure::Broken(format!("{count}: {error}")))?;
        let bytes = read.data.len();
        demand((1..=told as usize).contains(&bytes), || format!("{bytes} bytes for {count}, rtmax is {told}"))?;
        demand(!read.end_of_file, || format!("{count}: eof"))?;
    }
    Ok(())
}

fn holes_and_cuts(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("holes")?;
    for (stability, size) in
        [(stable_how::UNSTABLE, 50_000), (stable_how::FILE_SYNC, 50_000), (stable_how::UNSTABLE, 4096)]
    {
        place.client.setattr(&file, Change { size: Some(0), ..Change::default() }, None)?;
        place.client.write(&file, size, &[0xff; 5000], stability)?;
        let cut = size + 1234;
        place.client.setattr(&file, Change { size: Some(cut), ..Change::default() }, None)?;
        place.client.setattr(&file, Change { size: Some(size + 9000), ..Change::default() }, None)?;
        place.client.write(&file, size + 8000, &[0xee; 10], stability)?;
        let read = place.client.read_all(&file, 0, 100_000, 16_384, 4)?;
        let expected: Vec<u8> = (0..size + 9000)
            .map(|at| match at {
                at if at < size => 0,
                at if at < cut => 0xff,
                at if (size + 8000..size + 8010).contains(&at) => 0xee,
                _ => 0,
            })
            .collect();
        let wrong = expected.iter().zip(&read).position(|(one, other)| one != other);
        demand(read.len() == expected.len() && wrong.is_none(), || {
            format!("{} bytes of {}, the first wrong one {wrong:?}", read.len(), expected.len())
        })?;
    }
    Ok(())
}

fn limits_make_sense(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    let file = place.file("file")?;
    let mut faults = Faults::default();
    for object in [&directory, &file] {
        let info = place.client.fsinfo(object)?;
        faults.demand((1..=info.rtmax).contains(&info.rtpref), || format!("reads: {info:?}"));
        faults.demand((1..=info.wtmax).contains(&info.wtpref), || format!("writes: {info:?}"));
        faults.demand(info.rtmult > 0 && info.wtmult > 0, || format!("multiples: {info:?}"));
        faults.demand(info.dtpref >= 512 && info.maxfilesize >= 1 << 31, || format!("{info:?}"));
        // Hard links, symbolic links, and times that can be set.
        faults.demand(info.properties & 0x13 == 0x13, || format!("properties {:#x}", info.properties));
        let space = place.client.fsstat(object)?;
        let ordered = space.abytes <= space.tbytes && space.fbytes <= space.tbytes;
        faults.demand(space.tbytes > 0 && ordered, || format!("{space:?}"));
        let limits = place.client.pathconf(object)?;
        faults.demand(limits.name_max == 255 && limits.linkmax > 1, || format!("{limits:?}"));
        faults.demand(limits.no_trunc && !limits.case_insensitive && limits.case_preserving, || format!("{limits:?}"));
    }
    faults.end()
}

fn access_grants_what_is_asked(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.directory.clone();
    let file = place.file("file")?;
    let mut faults = Faults::default();
    for (what, object, all) in [("a directory", &directory, 0x1f), ("a file of mode 666", &file, 0x0d)] {
        for asked in [0, 1, 2, 4, 8, 0x10, 0x20, 0x3f, u32::MAX] {
            let granted = place.client.access(object, asked)?.access;
            faults.demand(granted & !asked == 0, || format!("{what}: {granted:#x} of {asked:#x}"));
            faults.demand(granted & all == asked & all, || format!("{what}: only {granted:#x} of {asked:#x}"));
        }
    }
    faults.end()
}
