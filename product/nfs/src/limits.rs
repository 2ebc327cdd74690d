//! The server's limits: the fixed ones, the preferred sizes that it reports to clients, and its knobs.
//!
//! Owns: the sizes that FSINFO announces, the bounds on calls in progress, the table of the knobs.
//! Does not own: limits of files and names (the volume); the values of knobs (the engine's settings; the code that
//! makes an engine adds the table); the knobs that the transport obeys, which the command passes to it.
//! Invariants: preferred sizes are not above the largest ones. The code reads each knob when it needs the value, so
//! that a change needs no restart.

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

/// A READ or a listing may always have a reply of this size, however little quota there is. The client asks again for
/// the rest.
pub(crate) const REPLY_BYTES_SHORT: u32 = 16 << 10;
/// Memory of a call in progress in addition to the record and the reply's data: the future, the slot in the queue.
pub(crate) const CALL_BYTES: u64 = 12 << 10;

/// Most bytes of an access control list in a reply: 1,024 entries.
pub(crate) const ACL_BYTES_MAX: u32 = 4 + 1024 * 24;

/// The longest wait for the host's answer about a user: a directory service may be away.
pub(crate) const LOOK_UP_PATIENCE_NS: u64 = 5_000_000_000;

/// Most calls of one connection that run at once; further ones stay in the received bytes.
pub const CALLS_MAX: usize = 1024;
/// Most calls that a poll of a connection starts; also the most that it finishes.
pub(crate) const CALLS_PER_POLL_MAX: usize = 256;
/// Most bytes of requests and replies of the waiting calls that a poll of a connection goes on with: so much may be
/// copied in one.
pub(crate) const CHARGES_PER_POLL_MAX: u64 = 1 << 20;
/// Most bytes of requests that a poll starts.
pub(crate) const REQUEST_BYTES_PER_POLL_MAX: usize = 2 << 20;
/// A poll stops adding replies at this length, so that connections alternate.
pub(crate) const REPLY_BYTES_PER_POLL_MAX: usize = 1 << 20;

const _: () = assert!(DATA_BYTES_PREFERRED <= READ_BYTES_MAX && DATA_BYTES_PREFERRED <= WRITE_BYTES_MAX);
const _: () = assert!(REPLY_BYTES_SHORT <= LISTING_BYTES_MAX);
const _: () = assert!(READ_BYTES_MAX.is_multiple_of(DATA_BYTES_MULTIPLE));

afflux_volume::knobs! {
    /// A knob of the NFS front end.
    NfsKnob of "frontend-nfs":

    InflightBytes "nfs_inflight_bytes_max" 16777216 in 1048576..=1073741824 "bytes" Engine NextUse
        "Most request and reply bytes in progress on one connection. Above it, the server reads no more from the connection. All connections of one party together may have four times as much; a connection without a call in progress may still send one. A call that changes something goes on when its connection ends, and counts for its party until then; a party that has left half as much behind begins no other call. A party is a user of this machine at any address, or another machine: its IPv4 address, or its IPv6 network of 64 bits.";
    RequestBytes "nfs_request_bytes_max" 268435456 in 134217728..=1099511627776 "bytes" Engine NextUse
        "Most bytes of requests and replies on all connections together. They are records being received or waiting, data of calls in progress, and replies not sent yet. Each of the 1,024 possible connections keeps 64 KiB of it; beyond that, a connection takes at most as many bytes as it leaves free. A connection that gets no more waits, and others go on. The server closes a connection after some seconds if it holds more than its own part and waits for its client while others wait for memory.";
    IdleCentisecs "nfs_idle_centisecs" 36000 in 0..=360000 "centiseconds" Engine NextUse
        "Time that a connection without calls in progress may be silent before the server closes it. 0: for ever. Clients connect again by themselves.";
    PeerConnections "nfs_peer_connections_max" 768 in 1..=1024 "connections" Engine NextUse
        "Most connections of one party: a user of this machine at any address, or another machine (its IPv4 address, or its IPv6 network of 64 bits). There are at most 1,024 connections in all, and a sixteenth of them is for this machine's root alone. For a new connection beyond that, the party with the most connections gives one up: an idle one, one whose client does not read, or any one if the new party has fewer. If none can go, the new connection is refused.";
    Xattrs "nfs_xattrs" 0 in 0..=1 "0 or 1" Engine NextUse
        "1 offers extended attributes (`user.`) to clients of version 4.2, from their next mount on. Debian 13's `ls -l` then sends seven times as many calls.";
    PosixAcls "nfs_posix_acls" 0 in 0..=1 "0 or 1" Engine NextUse
        "1 offers POSIX access control lists to clients of version 4.2 that know draft-ietf-nfsv4-posix-acls, from their next mount on. Such a client may ask for the lists of each file.";
}
