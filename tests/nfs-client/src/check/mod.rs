//! Checks the answers of any reachable NFSv3 server.
//!
//! Each check tests a rule that clients rely on and that servers are known to break; most violations were found in
//! servers in use. No check reads the server's disk: a client could have made every finding.
//!
//! Owns: the list of checks.
//! Does not own: starting a server; the consequences of a failure for that server's release.
//! Invariants: a check works in its own directory and does not disturb the connection that others use. It ends, since
//! each call waits at most for [`PATIENCE`].

mod attributes;
mod callers;
mod definition;
mod errors;
mod failure;
mod handles;
mod listing;
mod names;
mod reading;
mod space;
mod target;
mod transport;
mod work_directory;
mod writes;

pub use definition::Check;
pub use failure::Failure;
pub use space::make_links;
pub use target::{More, PATIENCE, Target};

/// All checks.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let files = [
        attributes::CHECKS,
        writes::CHECKS,
        names::CHECKS,
        errors::CHECKS,
        handles::CHECKS,
        listing::CHECKS,
        reading::CHECKS,
        space::CHECKS,
        callers::CHECKS,
        transport::CHECKS,
    ];
    files.into_iter().flatten()
}
