//! Checks of WRITE and COMMIT.
//!
//! Owns: sizes at and past a server's limits, contradictory counts, the write verifier.
//! Does not own: attributes (`attributes`).
//! Invariants: after each refusal the server is used again, to see that it still works.

use nfs3_types::nfs3::{WRITE3args, stable_how};
use nfs3_types::xdr_codec::Pack;

use super::definition::{Check, checks};
use super::failure::{Failure, demand, status_of};
use super::work_directory::WorkDirectory;
use crate::connection::{Error, NFS};
use crate::procedures::{fh, packed, results, write_arguments};
use crate::status::{FBIG, INVAL};

checks! {
    past_the_largest_file: "a WRITE that no file can hold is refused at once, and keeps nobody else from writing";
    larger_than_told: "a WRITE above wtmax is answered, with less than was sent or with an error, on a connection that stays";
    count_below_the_data: "a WRITE whose count is less than its data writes no more than the count, or fails";
    verifier_stays: "WRITE and COMMIT carry one verifier while nothing was lost";
    count_above_the_data: "a WRITE whose count is more than its data writes nothing that was not sent";
    write_of_nothing: "a WRITE of no bytes succeeds and changes neither size nor modification time";
}

fn past_the_largest_file(place: &mut WorkDirectory) -> Result<(), Failure> {
    const FAR: u64 = 1 << 62;
    let far = place.file("far")?;
    let told = place.client.fsinfo(&place.directory)?.maxfilesize;
    for at in [FAR, told, told.saturating_sub(1), u64::MAX - 4096] {
        let status = status_of(place.client.write(&far, at, &[1; 4096], stable_how::UNSTABLE))?;
        let refused = status == FBIG || status == INVAL;
        let fits = at.checked_add(4096).is_some_and(|end| end <= told);
        demand(refused || status == 0 && fits, || format!("status {status} for a WRITE at {at}, maxfilesize {told}"))?;
        if status == 0 {
            let status = status_of(place.client.commit(&far, 0, 0))?;
            demand(status == 0, || format!("a WRITE at {at} was taken, and its COMMIT has status {status}"))?;
        }
    }
    let near = place.file("near")?;
    place.fill(&near, 1 << 20)?;
    place.client.commit(&near, 0, 0)?;
    Ok(())
}

fn larger_than_told(place: &mut WorkDirectory) -> Result<(), Failure> {
    let told = place.client.fsinfo(&place.directory)?.wtmax;
    let file = place.file("large")?;
    let bytes = vec![3; told as usize + 4096];
    match place.client.write(&file, 0, &bytes, stable_how::UNSTABLE) {
        Ok(written) => {
            let count = written.count as usize;
            demand((1..=bytes.len()).contains(&count), || format!("{count} bytes taken of {}", bytes.len()))?;
            let size = place.attributes(&file)?.size;
            demand(size == count as u64, || format!("{count} bytes taken, and the size is {size}"))
        }
        Err(Error::Status { .. } | Error::Refused { .. }) => Ok(()),
        Err(error) => Err(Failure::Broken(format!("no answer to {} bytes, with wtmax {told}: {error}", bytes.len()))),
    }?;
    place.client.null()?;
    Ok(())
}

fn count_below_the_data(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("count")?;
    let whole = packed(&write_arguments(&file, 0, &[9; 64], stable_how::FILE_SYNC));
    // The count follows the handle and the offset.
    let at = fh(&file).packed_size() + 8;
    let mut arguments = whole;
    arguments[at..at + 4].copy_from_slice(&16_u32.to_be_bytes());
    let written = match place.client.call(NFS, 7, &arguments) {
        Ok(written) => results::<WRITE3args<'_>>(&written).map_or(0, |written| written.count.into()),
        Err(Error::Refused { .. }) => 0,
        Err(error) => return Err(Failure::Broken(format!("no answer: {error}"))),
    };
    let size = place.attributes(&file)?.size;
    demand(written <= 16 && size == written, || format!("count 16 of 64 bytes: {written} told, the size is {size}"))
}

fn verifier_stays(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("verifier")?;
    let first = place.client.write(&file, 0, &[1; 4096], stable_how::UNSTABLE)?.verf;
    for round in 1..5 {
        let written = place.client.write(&file, round * 4096, &[1; 4096], stable_how::UNSTABLE)?.verf;
        let committed = place.client.commit(&file, 0, 0)?.verf;
        demand(written == first && committed == first, || format!("{first:x?}, {written:x?}, {committed:x?}"))?;
    }
    Ok(())
}

fn count_above_the_data(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("count")?;
    let mut arguments = packed(&write_arguments(&file, 0, &[9; 64], stable_how::FILE_SYNC));
    let at = fh(&file).packed_size() + 8;
    arguments[at..at + 4].copy_from_slice(&4096_u32.to_be_bytes());
    match place.client.call(NFS, 7, &arguments) {
        Ok(_) | Err(Error::Refused { .. }) => {}
        Err(error) => return Err(Failure::Broken(format!("no answer: {error}"))),
    }
    let size = place.attributes(&file)?.size;
    demand(size <= 64, || format!("count 4096 of 64 bytes: the size is {size}"))
}

fn write_of_nothing(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("nothing")?;
    place.client.write(&file, 0, b"data", stable_how::FILE_SYNC)?;
    let before = place.attributes(&file)?;
    let written = place.client.write(&file, 1 << 20, b"", stable_how::FILE_SYNC)?;
    let after = place.attributes(&file)?;
    demand(written.count == 0, || format!("{} bytes of none written", written.count))?;
    demand((after.size, after.mtime) == (before.size, before.mtime), || {
        format!("size {} and mtime {:?} became {} and {:?}", before.size, before.mtime, after.size, after.mtime)
    })
}
