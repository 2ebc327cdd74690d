//! The plan of an exercise, and the fault that it may find.
//!
//! Owns: the numbers of operations, clients and files; their sizes; the form of a fault.
//! Does not own: the exercise (`exercise`).

/// The plan of an exercise.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Determines the operations.
    pub seed: u64,
    /// The number of operations.
    pub operations: u64,
    /// The number of clients.
    pub clients: usize,
    /// Most calls that one client has in flight.
    pub in_flight: usize,
    /// Files at a time.
    pub files: usize,
    /// The largest file.
    pub file_bytes_max: u64,
    /// Most bytes of one READ or WRITE.
    pub call_bytes_max: u64,
    /// Servers are killed: a reply may be lost together with the server's memory of it.
    pub kills: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            operations: 10_000,
            clients: 4,
            in_flight: 4,
            files: 6,
            file_bytes_max: 400_000,
            call_bytes_max: 40_000,
            kills: false,
        }
    }
}

/// A fault that an exercise has found.
#[derive(Debug, thiserror::Error)]
#[error("operation {operation}, {call}: {what}")]
pub struct Fault {
    /// The number of operations begun so far.
    pub operation: u64,
    /// The call that showed the fault.
    pub call: String,
    /// The fault in words.
    pub what: String,
}
