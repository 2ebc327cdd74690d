//! What outlives a server: by a kill, or in its state directory.
//!
//! Owns: the cache's memory, the mount, prices, clients and their state, the verifier.
//! Does not own: the contents of the memory (the engine), the manager's store (`afflux_linux_server`).
//! Invariants: nothing is told to a client before what promises it is kept.

pub(crate) mod arena;
pub(crate) mod client_state;
pub(crate) mod last_run;
pub(crate) mod own_directory;
pub(crate) mod persisted_clients;
pub(crate) mod persisted_mount;
pub(crate) mod persisted_prices;
pub(crate) mod rescue;
pub(crate) mod starts;
pub(crate) mod state;
pub(crate) mod unnamed_files;
pub(crate) mod word_runs;
