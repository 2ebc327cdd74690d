//! Version 3 of NFS (RFC 1813), with MOUNT and a lock service that has no locks.
//!
//! Owns: arguments, procedures and results of both programs, the replies cached against repetition.
//! Does not own: the transport (`wire`), the volume's operations (`operations`), when a call runs (`connection`).
//! Invariants: nothing of a call is cached but its reply.

pub(crate) mod arguments;
mod encoding;
pub(crate) mod mount;
mod permitted;
pub(crate) mod procedures;
pub(crate) mod reply_cache;
pub(crate) mod side_protocols;
