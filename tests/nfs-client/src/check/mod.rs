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
pub const CHECKS: &[Check] = &[
    attributes::USED_COVERS_THE_DATA,
    attributes::USED_AFTER_A_TRUNCATION,
    attributes::CONSISTENCY_OF_A_WRITE,
    attributes::CONSISTENCY_OF_A_SETATTR,
    attributes::TIMES_STAY_OVER_A_COMMIT,
    attributes::SPECIAL_BITS_ARE_CLEARED,
    attributes::NANOSECONDS_OUT_OF_RANGE,
    writes::PAST_THE_LARGEST_FILE,
    writes::LARGER_THAN_TOLD,
    writes::COUNT_BELOW_THE_DATA,
    writes::VERIFIER_STAYS,
    names::MOUNT_THROUGH_A_SYMLINK,
    names::DEVICE_NODES,
    names::REMOVE_REPEATED,
    names::EXCLUSIVE_REPEATED,
    names::STALE_HANDLE,
    names::SAME_NUMBER_OTHER_CALL,
    names::REPEATED_WHILE_RUNNING,
    names::EXCLUSIVE_WHOLE_VERIFIER,
    names::CREATE_WITH_TIMES,
    names::CREATE_OF_WHAT_IS_THERE,
    names::LINKS_ARE_COUNTED,
    names::LINKS_BESIDE_OTHER_CHANGES,
    names::SYMLINK_SAYS_WHAT_IT_WAS_TOLD,
    errors::BAD_HANDLE,
    errors::GONE_DIRECTORY,
    errors::NOT_A_DIRECTORY,
    errors::NOT_A_FILE,
    errors::NAME_TOO_LONG,
    errors::NAMES_THAT_ARE_NONE,
    errors::NAME_TAKEN,
    errors::NO_SUCH_NAME,
    errors::RENAMES_THAT_CANNOT_BE,
    errors::REMOVES_THAT_CANNOT_BE,
    errors::DOTS,
    errors::GUARD,
    errors::BAD_TYPE,
    errors::TOO_LARGE_A_SIZE,
    handles::ROOT_HAS_NO_PARENT,
    handles::HANDLE_AFTER_A_RENAME,
    handles::FILE_NUMBERS,
    listing::ONE_NAME_ONCE,
    listing::NAMES_OF_ONE_FILE,
    listing::GOES_ON_AFTER_A_CHANGE,
    listing::REMOVED_WHILE_LISTED,
    listing::NEVER_LONGER_THAN_ASKED,
    listing::UNKNOWN_COOKIE,
    listing::COOKIES_ARE_SMALL,
    reading::ACROSS_THE_END,
    reading::MORE_THAN_TOLD,
    reading::HOLES_AND_CUTS,
    reading::LIMITS_MAKE_SENSE,
    reading::ACCESS_GRANTS_WHAT_IS_ASKED,
    writes::COUNT_ABOVE_THE_DATA,
    writes::WRITE_OF_NOTHING,
    space::READ_ONLY,
    space::NO_SPACE,
    space::TOO_MANY_LINKS,
    space::OTHER_FILE_SYSTEM,
    callers::DENIED,
    callers::NOT_THE_OWNER,
    callers::OWNER_WRITES_ANYWAY,
    transport::FRAGMENTS,
    transport::MANY_IN_ONE_PIECE,
    transport::REFUSALS,
    transport::MOUNT_ERRORS,
    transport::MOUNT_FLAVOURS,
    transport::MOUNT_LISTS,
];
