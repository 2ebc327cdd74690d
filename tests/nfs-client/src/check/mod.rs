//! Checks the answers of any reachable NFSv3 server.
//!
//! Each check tests a rule that clients rely on and that servers are known to break; most violations were found in
//! servers in use. No check reads the server's disk: a client could have made every finding.
//!
//! Owns: the checks by name; new connections for checks that need them.
//! Does not own: starting a server; the consequences of a failure for that server's release.
//! Invariants: a check works in its own directory and does not disturb the connection that others use. It ends, since
//! each call waits at most for [`PATIENCE`].

mod attributes;
mod callers;
mod errors;
mod handles;
mod listing;
mod names;
mod reading;
mod space;
mod transport;
mod writes;

pub use space::make_links;

use std::net::SocketAddr;
use std::time::Duration;

use crate::connection::{Client, Error};
use crate::procedures::Change;
use crate::results::{Attributes, Handle, Stability};
use crate::wire::Malformed;

/// The longest wait for a reply.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that a check writes at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The place of the server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address of NFS.
    pub nfs: SocketAddr,
    /// The address of MOUNT.
    pub mount: SocketAddr,
    /// The path to mount.
    pub export: String,
    /// Further exports that some checks need.
    pub more: More,
}

/// Exports for some checks; a check without its export is left out.
#[derive(Clone, Debug, Default)]
pub struct More {
    /// A read-only export on another file system, with a file `file` and a directory `directory` in it.
    pub read_only: Option<String>,
    /// An export of some megabytes on its own file system, with the files of [`make_links`] in it.
    pub small: Option<String>,
}

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The rule that a client relies on.
    pub rule: &'static str,
    run: fn(&mut WorkDirectory) -> Result<(), Failure>,
}

/// The reason that a check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server breaks the rule.
    #[error("{0}")]
    Broken(String),
    /// A call that is not part of the rule failed.
    #[error(transparent)]
    Call(#[from] Error),
    /// The target lacks something that the check needs.
    #[error("needs {0}")]
    Missing(&'static str),
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Call(malformed.into())
    }
}

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

impl Target {
    /// Mounts the export.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not export the path.
    pub fn reach(&self) -> Result<(), Failure> {
        let root = connect(self.mount)?.mount(&self.export)?;
        connect(self.nfs)?.getattr(&root)?;
        Ok(())
    }
}

impl Check {
    /// Checks the server, in a directory named after the check, which is removed afterwards.
    ///
    /// # Errors
    /// When the rule does not hold, or the server cannot be used.
    pub fn run(&self, target: &Target) -> Result<(), Failure> {
        let mut place = WorkDirectory::new(target, self.name)?;
        let result = (self.run)(&mut place);
        place.remove();
        result
    }
}

/// A working directory on the server, and a connection to it.
pub(crate) struct WorkDirectory {
    target: Target,
    client: Client,
    root: Handle,
    name: &'static str,
    directory: Handle,
}

impl WorkDirectory {
    fn new(target: &Target, name: &'static str) -> Result<Self, Failure> {
        let root = connect(target.mount)?.mount(&target.export)?;
        let mut client = connect(target.nfs)?;
        let change = Change { mode: Some(0o777), ..Change::default() };
        let made = client.mkdir(&root, name.as_bytes(), change)?;
        let directory = match made.handle {
            Some(handle) => handle,
            None => client.lookup(&root, name.as_bytes())?.0,
        };
        Ok(Self { target: target.clone(), client, root, name, directory })
    }

    fn another(&self) -> Result<Client, Failure> {
        Ok(connect(self.target.nfs)?)
    }

    fn file(&mut self, name: &str) -> Result<Handle, Failure> {
        let change = Change { mode: Some(0o666), size: Some(0), ..Change::default() };
        let made = self.client.create(&self.directory, name.as_bytes(), crate::Creation::Unchecked(change))?;
        match made.handle {
            Some(handle) => Ok(handle),
            None => Ok(self.client.lookup(&self.directory, name.as_bytes())?.0),
        }
    }

    /// Writes `len` bytes from the start, UNSTABLE.
    fn fill(&mut self, file: &Handle, len: usize) -> Result<(), Failure> {
        let bytes = vec![0x5a; PIECE_BYTES];
        for offset in (0..len).step_by(PIECE_BYTES) {
            let piece = &bytes[..(len - offset).min(PIECE_BYTES)];
            let written = self.client.write(file, offset as u64, piece, Stability::Unstable)?;
            demand(written.count as usize == piece.len(), || {
                format!("a WRITE of {} took {}", piece.len(), written.count)
            })?;
        }
        Ok(())
    }

    fn attributes(&mut self, file: &Handle) -> Result<Attributes, Failure> {
        Ok(self.client.getattr(file)?)
    }

    /// Removes a check's files. Files that cannot be removed stay: only the check's result counts.
    fn remove(mut self) {
        // The server may have closed the connection; the check itself reports that.
        let Ok(mut client) = connect(self.target.nfs) else { return };
        std::mem::swap(&mut self.client, &mut client);
        let directory = std::mem::take(&mut self.directory);
        self.empty(&directory, 0);
        let _ = self.client.rmdir(&self.root, self.name.as_bytes());
    }

    /// Removes everything in a directory of the check, to the depth that checks use.
    fn empty(&mut self, directory: &Handle, depth: u32) {
        const DEPTH_MAX: u32 = 4;
        for entry in self.client.entries(directory).unwrap_or_default() {
            if self.client.remove(directory, &entry.name).is_ok() {
                continue;
            }
            if depth < DEPTH_MAX
                && let Ok((below, _)) = self.client.lookup(directory, &entry.name)
            {
                self.empty(&below, depth + 1);
            }
            let _ = self.client.rmdir(directory, &entry.name);
        }
    }

    /// Creates a directory in the check's directory.
    fn subdirectory(&mut self, name: &str) -> Result<Handle, Failure> {
        let change = Change { mode: Some(0o777), ..Change::default() };
        let made = self.client.mkdir(&self.directory, name.as_bytes(), change)?;
        match made.handle {
            Some(handle) => Ok(handle),
            None => Ok(self.client.lookup(&self.directory, name.as_bytes())?.0),
        }
    }

    /// The names in a directory, by READDIRPLUS.
    fn names(&mut self, directory: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        Ok(self.client.entries(directory)?.into_iter().map(|entry| entry.name).collect())
    }
}

fn connect(address: SocketAddr) -> Result<Client, Error> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Fails with the text of `said` unless `holds`.
fn demand(holds: bool, said: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Broken(said())) }
}

/// The faults among many attempts.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Notes a call whose status is not allowed.
    fn expect<T>(&mut self, what: &str, result: Result<T, Error>, allowed: &[u32]) -> Result<(), Failure> {
        let status = status_of(result)?;
        if !allowed.contains(&status) {
            self.0.push(format!("{what}: status {status}, not {allowed:?}"));
        }
        Ok(())
    }

    fn demand(&mut self, holds: bool, said: impl FnOnce() -> String) {
        if !holds {
            self.0.push(said());
        }
    }

    fn end(self) -> Result<(), Failure> {
        demand(self.0.is_empty(), || self.0.join("; "))
    }
}

/// The status of a call that should fail; 0 if it succeeded.
fn status_of<T>(result: Result<T, Error>) -> Result<u32, Failure> {
    match result {
        Ok(_) => Ok(0),
        Err(Error::Status { status, .. }) => Ok(status),
        Err(error) => Err(error.into()),
    }
}
