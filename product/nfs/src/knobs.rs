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
        "Most request and reply bytes in progress on one connection. Above it, the server reads no more from the connection. All connections of one party together may have four times as much; a connection without a call in progress may still send one. A call that changes something goes on when its connection ends, and counts for its party until then; a party that has left half as much behind begins no other call. A party is a user of this machine at any address, or another machine: its IPv4 address, or its IPv6 network of 64 bits.";
    RequestBytes "nfs_request_bytes_max" 268435456 in 134217728..=1099511627776 "bytes" Engine NextUse
        "Most bytes of requests and replies on all connections together. They are records being received or waiting, data of calls in progress, and replies not sent yet. Each of the 1,024 possible connections keeps 64 KiB of it; beyond that, a connection takes at most as many bytes as it leaves free. A connection that gets no more waits, and others go on. The server closes a connection after some seconds if it holds more than its own part and waits for its client while others wait for memory.";
    IdleCentisecs "nfs_idle_centisecs" 36000 in 0..=360000 "centiseconds" Engine NextUse
        "Time that a connection without calls in progress may be silent before the server closes it. 0: for ever. Clients connect again by themselves.";
    PeerConnections "nfs_peer_connections_max" 768 in 1..=1024 "connections" Engine NextUse
        "Most connections of one party: a user of this machine at any address, or another machine (its IPv4 address, or its IPv6 network of 64 bits). There are at most 1,024 connections in all, and a sixteenth of them is for this machine's root alone. For a new connection beyond that, the party with the most connections gives one up: an idle one, one whose client does not read, or any one if the new party has fewer. If none can go, the new connection is refused.";
    Xattrs "nfs_xattrs" 0 in 0..=1 "0 or 1" Engine NextUse
        "1 offers extended attributes (`user.`) to clients of version 4.2, from their next mount on. Debian 13's `ls -l` then sends seven times as many calls.";
}
