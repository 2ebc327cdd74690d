//! The server's limits, and the sizes that it tells clients to prefer.
//!
//! Owns: the sizes that FSINFO announces and the bounds on calls in progress.
//! Does not own: limits of files and names (the volume), or the bound on bytes in progress (a knob).
//! Invariants: preferred sizes are not above the largest ones.

/// Most bytes of data a READ returns.
pub const READ_BYTES_MAX: u32 = 1 << 20;
/// Most bytes of data a WRITE may carry.
pub const WRITE_BYTES_MAX: u32 = 1 << 20;
/// Preferred size of READ and WRITE. It still fits a core's own cache, where the copy between socket and page frames is
/// fastest (calls of 64 to 256 KiB moved more bytes than calls of 1 MiB).
pub const DATA_BYTES_PREFERRED: u32 = 256 << 10;
/// Most bytes of a directory listing's reply, for any request; also the preferred size.
pub const LISTING_BYTES_MAX: u32 = 64 << 10;
/// READ and WRITE sizes should be multiples of a page.
pub const DATA_BYTES_MULTIPLE: u32 = 4096;

/// Most bytes of a file handle (RFC 1813, `NFS3_FHSIZE`).
pub const HANDLE_BYTES_MAX: usize = 64;

/// Most bytes of a client's own name in version 4, and of an owner's.
pub(crate) const OWNER_BYTES_MAX: usize = 1024;

/// A READ or a listing may always have a reply of this size, however little room there is. The client asks again for
/// the rest.
pub(crate) const REPLY_BYTES_SHORT: u32 = 16 << 10;
/// Memory of a call in progress beside the record and the reply's data: the future, the slot in the queue.
pub(crate) const CALL_BYTES: u64 = 12 << 10;

/// Most calls of one connection that run at once; further ones stay in the received bytes.
pub const CALLS_MAX: usize = 1024;
/// Most calls that a poll of a connection starts; also the most that it finishes.
pub(crate) const CALLS_PER_POLL_MAX: usize = 256;
/// Most bytes of requests and replies of the waiting calls that a poll of a connection goes on with: so much may be
/// copied in one.
pub(crate) const CHARGES_PER_POLL_MAX: u64 = 1 << 20;
/// Most bytes of requests that a poll starts.
pub(crate) const REQUEST_BYTES_PER_POLL_MAX: usize = 2 << 20;
/// A poll stops adding replies at this length, so that connections take turns.
pub(crate) const REPLY_BYTES_PER_POLL_MAX: usize = 1 << 20;

const _: () = assert!(DATA_BYTES_PREFERRED <= READ_BYTES_MAX && DATA_BYTES_PREFERRED <= WRITE_BYTES_MAX);
const _: () = assert!(REPLY_BYTES_SHORT <= LISTING_BYTES_MAX);
const _: () = assert!(READ_BYTES_MAX.is_multiple_of(DATA_BYTES_MULTIPLE));
