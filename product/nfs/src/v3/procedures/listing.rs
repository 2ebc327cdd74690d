//! READDIR and READDIRPLUS.
//!
//! Owns: the number of entries that fit the client's limit.
//! Does not own: the order of entries and their cookies (the volume).
//! Invariants: a listing is never longer than requested, and never empty before the end: if not one entry fits, the
//! reply is an error. The cookie verifier is constant, since cookies stay valid.

use afflux_volume::{DirectoryEntry, Listing, Platform};

use super::failure::failed;
use crate::operations::{Ended, Operations, Task};
use crate::status::NfsStatus;
use crate::v3::arguments::ListingRequest;
use crate::v3::encoding::POST_OP_BYTES;
use crate::wire::reply::Draft;
use crate::wire::xdr::{Writer, opaque_bytes};

const VERIFIER: [u8; 8] = [0; 8];
/// The words after the last entry: no further entry, and whether this was the end.
const TRAILER_BYTES: usize = 4 + 4;
/// Bytes of a listing without entries: the directory's attributes, the verifier, the trailer.
const FRAME_BYTES: usize = POST_OP_BYTES + VERIFIER.len() + TRAILER_BYTES;
/// Assumed length of a name, to guess how many entries fit. Entries beyond that are read in vain, and each costs a call
/// to the host if attributes are requested.
const NAME_BYTES_USUAL: usize = 12;
const HANDLE_BYTES_USUAL: usize = 40;

/// The bytes of an entry that count for `dircount`: file number, name, cookie.
const fn directory_bytes(name_len: usize) -> usize {
    8 + opaque_bytes(name_len) + 8
}

fn entries_max(request: &ListingRequest) -> usize {
    let room = (request.result_bytes_max as usize).saturating_sub(FRAME_BYTES);
    let mut entry = 4 + directory_bytes(NAME_BYTES_USUAL);
    if request.with_attributes {
        entry += POST_OP_BYTES + 4 + opaque_bytes(HANDLE_BYTES_USUAL);
    }
    let by_names = request.directory_bytes_max as usize / directory_bytes(NAME_BYTES_USUAL);
    (room / entry).min(by_names).max(1)
}

pub(super) async fn list<P: Platform>(on: &Task<'_, P>, draft: &mut Draft, request: ListingRequest) -> Ended {
    let directory = on.resolve(request.directory).await?;
    let most = entries_max(&request);
    let listed = on.volume.list_by(on.caller, &directory, request.cookie, most, request.with_attributes).await;
    let listing = match listed {
        Ok(listing) => listing,
        Err(error) => return failed(on, draft, &directory, error.into()).await,
    };
    if let Err(status) = fill(draft, &request, &listing) {
        draft.status(status).post_op(Some(&listing.directory));
    }
    Ok(())
}

/// Writes status and results; an error if not one entry fits.
fn fill(draft: &mut Draft, request: &ListingRequest, listing: &Listing) -> Result<(), NfsStatus> {
    let start = draft.writer.len();
    let writer = draft.status(NfsStatus::Ok);
    let results_at = writer.len();
    writer.post_op(Some(&listing.directory));
    writer.raw(&VERIFIER);
    let mut names_left = request.directory_bytes_max as usize;
    let mut written = 0;
    for entry in &listing.entries {
        let before = writer.len();
        write_entry(writer, entry, request.with_attributes);
        let results = writer.len() - results_at + TRAILER_BYTES;
        let names = directory_bytes(entry.name.len());
        if results > request.result_bytes_max as usize || names > names_left {
            writer.truncate(before);
            break;
        }
        names_left -= names;
        written += 1;
    }
    let too_small = FRAME_BYTES > request.result_bytes_max as usize;
    if too_small || (written == 0 && !listing.entries.is_empty()) {
        writer.truncate(start);
        return Err(NfsStatus::Toosmall);
    }
    writer.bool(false);
    writer.bool(listing.end && written == listing.entries.len());
    Ok(())
}

fn write_entry(writer: &mut Writer, entry: &DirectoryEntry, with_attributes: bool) {
    writer.bool(true);
    writer.u64(entry.fileid);
    writer.opaque(&entry.name);
    writer.u64(entry.cookie);
    if !with_attributes {
        return;
    }
    match &entry.object {
        Some((handle, attributes)) => {
            writer.post_op(Some(attributes));
            writer.post_op_handle(handle.as_bytes());
        }
        None => {
            writer.post_op(None);
            writer.bool(false);
        }
    }
}
