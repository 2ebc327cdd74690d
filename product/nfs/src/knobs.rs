//! The knobs of the NFS front end.
//!
//! Owns: their table.
//! Does not own: values (the engine's settings; the code that makes an engine adds the table); the knobs that the
//! transport obeys, which the command passes to it.
//! Invariants: the code reads each knob when it needs the value, so that a change needs no restart.

afflux_volume::knobs! {
    /// A knob of the NFS front end.
    NfsKnob of "frontend-nfs":

    InflightBytes "nfs_inflight_bytes_max" 16777216 in 1048576..=1073741824 "bytes" Engine NextUse
        "Most request and reply bytes in progress on one connection before it is read no further.";
    ClientBytes "nfs_client_inflight_bytes_max" 67108864 in 1048576..=1099511627776 "bytes" Engine NextUse
        "Most request and reply bytes in progress on all connections of one party together before they are read no further. A party is a user of this machine, whichever address it comes by, or another machine: its address, of IPv6 its network of 64 bits. A connection with none in progress is still read for one call.";
    RequestBytes "nfs_request_bytes_max" 268435456 in 134217728..=1099511627776 "bytes" Engine NextUse
        "Most bytes of requests and replies, of all connections together: records being received or that wait, data of calls in progress, replies not sent yet. 64 KiB of it are kept for each of the 1,024 connections that there can be; beyond that a connection may take at most as much as it leaves free. One that gets no more waits, and others go on; one that waits for its peer with more than its own while others wait for memory is closed after a few seconds.";
    IdleCentisecs "nfs_idle_centisecs" 36000 in 0..=360000 "centiseconds" Engine NextUse
        "How long a connection without calls in progress may be silent before it is closed. 0 is for ever. Clients connect again by themselves.";
    PeerConnections "nfs_peer_connections_max" 768 in 1..=1024 "connections" Engine NextUse
        "Most connections of one party, which is a user of this machine, whichever address it comes by, or another machine: its address, of IPv6 its network of 64 bits. Of all together there are at most 1,024, a sixteenth of which is for this machine's root alone. For a further one the party with the most makes room: by an idle connection, or by one whose client does not read, or, for a party that has fewer, by any. If none can, the further one is refused.";
}
