//! Checks of READDIR and READDIRPLUS.
//!
//! Owns: the rule that every name is listed once, in pieces of any size and during changes.
//! Does not own: the entries' facts about their objects (`handles`).
//! Invariants: an endless listing is given up after [`PIECES_MAX`] pieces.

use std::collections::BTreeMap;

use super::definition::{Check, checks};
use super::failure::{Failure, Faults, demand, status_of};
use super::work_directory::WorkDirectory;
use crate::Listing;
use crate::connection::Error;
use crate::results::Handle;
use crate::status::{BAD_COOKIE, TOOSMALL};

const NAMES: usize = 120;
/// More pieces than any listing here has.
const PIECES_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug)]
enum How {
    Plain(u32),
    Plus(u32, u32),
}

const HOWS: [How; 5] =
    [How::Plain(512), How::Plain(4096), How::Plus(300, 1024), How::Plus(512, 4096), How::Plus(8192, 32_768)];

fn piece(
    place: &mut WorkDirectory,
    directory: &Handle,
    how: How,
    cookie: u64,
    verifier: [u8; 8],
) -> Result<Listing, Error> {
    match how {
        How::Plain(count) => place.client.readdir(directory, cookie, verifier, count),
        How::Plus(names, count) => place.client.readdirplus(directory, cookie, verifier, names, count),
    }
}

/// Lists a directory and reports each piece. Returns the number of times that each name came, without the dots.
fn list(
    place: &mut WorkDirectory,
    directory: &Handle,
    how: How,
    mut between: impl FnMut(&mut WorkDirectory, &Listing) -> Result<(), Failure>,
) -> Result<BTreeMap<Vec<u8>, u32>, Failure> {
    let (mut found, mut cookie, mut verifier) = (BTreeMap::new(), 0, [0; 8]);
    for _ in 0..PIECES_MAX {
        let listing = piece(place, directory, how, cookie, verifier)
            .map_err(|error| Failure::Broken(format!("{how:?} after cookie {cookie}: {error}")))?;
        for entry in listing.entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..") {
            *found.entry(entry.name.clone()).or_default() += 1;
        }
        between(place, &listing)?;
        if listing.end {
            return Ok(found);
        }
        let Some(last) = listing.entries.last() else {
            return Err(Failure::Broken(format!("{how:?}: a piece without entries that is not the end")));
        };
        (cookie, verifier) = (last.cookie, listing.verifier);
    }
    Err(Failure::Broken(format!("{how:?}: no end after {PIECES_MAX} pieces")))
}

fn once(how: How, found: &BTreeMap<Vec<u8>, u32>, expected: usize) -> Result<(), Failure> {
    let twice: Vec<_> =
        found.iter().filter(|(_, count)| **count != 1).map(|(name, _)| String::from_utf8_lossy(name)).collect();
    demand(twice.is_empty() && found.len() == expected, || {
        format!("{how:?}: {} of {expected} names, twice {twice:?}", found.len())
    })
}

fn filled(place: &mut WorkDirectory, name: &str) -> Result<Handle, Failure> {
    let directory = place.subdirectory(name)?;
    for at in 0..NAMES {
        // Names of many lengths.
        place.client.create_empty(&directory, format!("{at:0width$}", width = 1 + at % 40).as_bytes())?;
    }
    Ok(directory)
}

checks! {
    one_name_once: "a listing in pieces has every name once, in pieces of whatever size";
    names_of_one_file: "all names of one file are listed: a cookie is a place in the directory, not the file's number";
    listing_goes_on_after_a_change: "a listing goes on while others make and remove names: a name that is there all the time is listed once";
    removed_while_listed: "a listing whose names are removed as they come, as rm -r does, has all of them and ends";
    listing_never_longer_than_asked: "the results of a listing are within the client's count, and TOOSMALL where not one entry is";
    unknown_cookie: "a cookie that was never given does not start the listing again, or clients list for ever";
    cookies_are_small: "cookies are below 2^63, and in a small directory below 2^31, for those who keep them in a long";
}

fn one_name_once(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = filled(place, "many")?;
    let expected = place.names(&directory)?.len();
    HOWS.into_iter().try_for_each(|how| once(how, &list(place, &directory, how, |_, _| Ok(()))?, expected))
}

fn names_of_one_file(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = place.subdirectory("links")?;
    let file = place.client.create_empty(&directory, b"first")?;
    for at in 0..100 {
        place.client.link(&file, &directory, format!("link-{at}").as_bytes())?;
    }
    [How::Plain(512), How::Plus(300, 1024)]
        .into_iter()
        .try_for_each(|how| once(how, &list(place, &directory, how, |_, _| Ok(()))?, 101))
}

fn listing_goes_on_after_a_change(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = filled(place, "changing")?;
    let expected = place.names(&directory)?;
    for how in HOWS {
        let mut round = 0;
        let found = list(place, &directory, how, |place, _| {
            round += 1;
            place.client.create_empty(&directory, format!("new-{round}").as_bytes())?;
            place.client.remove(&directory, format!("new-{round}").as_bytes())?;
            Ok(())
        })?;
        let missed = expected.iter().filter(|name| found.get(*name) != Some(&1)).count();
        demand(missed == 0, || format!("{how:?}: {missed} of {} names not once", expected.len()))?;
    }
    Ok(())
}

fn removed_while_listed(place: &mut WorkDirectory) -> Result<(), Failure> {
    for how in [How::Plain(512), How::Plus(512, 4096)] {
        let directory = filled(place, &format!("{how:?}"))?;
        let expected = place.names(&directory)?.len();
        let found = list(place, &directory, how, |place, listing| {
            for entry in listing.entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..") {
                place.client.remove(&directory, &entry.name)?;
            }
            Ok(())
        })?;
        once(how, &found, expected)?;
        let left = place.names(&directory)?.len();
        demand(left == 0, || format!("{how:?}: {left} names are left"))?;
    }
    Ok(())
}

fn listing_never_longer_than_asked(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = filled(place, "sized")?;
    let mut faults = Faults::default();
    for count in [0, 1, 64, 100, 128, 200, 256, 300, 512, 1000, 1024, 4096, 8192, 65_536, 1 << 20, u32::MAX] {
        for how in [How::Plain(count), How::Plus(count, count), How::Plus(1 << 16, count)] {
            match piece(place, &directory, how, 0, [0; 8]) {
                Ok(listing) => {
                    let bytes = listing.result_bytes;
                    faults.demand(bytes <= count as usize, || format!("{how:?}: {bytes} bytes"));
                    faults.demand(!listing.entries.is_empty(), || format!("{how:?}: no entries"));
                }
                Err(Error::Status { status: TOOSMALL, .. }) if count < 512 => {}
                Err(error) => faults.0.push(format!("{how:?}: {error}")),
            }
        }
    }
    faults.end()
}

fn unknown_cookie(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = filled(place, "unknown")?;
    let first = piece(place, &directory, How::Plain(512), 0, [0; 8])?;
    let first_name = first.entries.iter().map(|entry| &entry.name).find(|name| !name.starts_with(b".")).cloned();
    for how in [How::Plain(512), How::Plus(512, 4096)] {
        for cookie in [u64::MAX, u64::MAX >> 1, 1 << 40, 0x1234_5678] {
            let answer = piece(place, &directory, how, cookie, first.verifier);
            let again = answer
                .as_ref()
                .is_ok_and(|listing| listing.entries.iter().any(|entry| Some(&entry.name) == first_name.as_ref()));
            let status = status_of(answer)?;
            // Cookies that order a directory by hash may be anywhere in it, but never at its start.
            demand(status == 0 || status == BAD_COOKIE || status == 22, || {
                format!("{how:?}, {cookie:#x}: status {status}")
            })?;
            demand(!again, || format!("{how:?}: cookie {cookie:#x} starts again"))?;
        }
    }
    Ok(())
}

fn cookies_are_small(place: &mut WorkDirectory) -> Result<(), Failure> {
    let directory = filled(place, "cookies")?;
    let listing = piece(place, &directory, How::Plain(32_768), 0, [0; 8])?;
    let largest = listing.entries.iter().map(|entry| entry.cookie).max().unwrap_or(0);
    demand(largest < 1 << 31, || format!("a cookie is {largest:#x}"))
}
