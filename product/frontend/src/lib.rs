//! What any front end shares: the machine that a world moves bytes for, and who calls.
//!
//! Owns: the seam between protocols and transports; what is known of a peer and of the caller of one call; what callers
//! ask for, while somebody records that.
//! Does not own: any protocol (front ends), any transport (worlds), files (the volume). Exports stay with the
//! volume: they are the roots above which no handle and no `..` leads, whichever front end asks.
//! Invariants: nothing here knows which protocol is spoken or what carries its bytes. A front end sees this crate
//! and the volume; a world sees this crate for its transports.
#![forbid(unsafe_code)]

mod caller;
mod machine;
mod recording;
pub mod trace;

pub use caller::{Claim, GROUPS_MAX, Origin, Party, Peer};
pub use machine::{Lent, LentBytes, Machine, Output, ProtocolError, Segment};
pub use recording::{CALLS_KEPT, RecordedCall, RecordedOperation, Recording, RecordingReader};
