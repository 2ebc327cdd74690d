//! The last server of a state directory: how it ended, and the number of its run.
//!
//! A server draws a number before it serves. The server writes the number into the state directory, the memory of the
//! cache and the state of clients. Memory with another number is of an earlier server, and a later one has served
//! since. The successor of a killed server over the same memory keeps the number.
//!
//! The number is in the file of the write verifier, which each version takes before it serves. So a version without
//! numbers leaves the file without a number, or no file.
//!
//! A server with another state directory, or with a copy of this one, does not change the file. Such a server is in the
//! record of starts (`starts`). The file counts only if that record has no later server of these places.
//!
//! Owns: the file, its form.
//! Does not own: when everything is written (`serve`), the use of the verifier (the volume), what follows from another
//! number (`arena`, `client_state`, `persisted_clients`).
//! Invariants: the number is durable before the first answer to a client. One server continues a verifier: the file
//! durably loses the verifier first. A file that cannot be read does not count as missing.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use afflux_engine::{Engine, Platform};
use afflux_linux_device::LinuxPlatform;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use tracing::{info, warn};

use crate::private_directory;
use crate::serve::persisted::starts::{Standing, StartRecord};
use crate::serve::persisted::state::{StateDirectory, WRITE_VERIFIER};

/// The first line of a server that has not ended in order.
const BEGUN: &str = "serving";

/// What the last server has left in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastRun {
    /// No server has used the directory, or a killed one of a version without numbers was the last.
    Unknown,
    /// One that serves, or was killed.
    Begun {
        /// The number of its run.
        number: u64,
    },
    /// One that ended with everything written.
    Ended {
        /// The write verifier, for the next server.
        verifier: [u8; 8],
        /// The number of its run. An earlier version had none.
        number: Option<u64>,
    },
}

impl LastRun {
    /// Reads the file.
    ///
    /// # Errors
    /// The host's, or the file has another form.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match private_directory::read(path) {
            Ok(text) => parse(&text).ok_or_else(|| io::Error::other("it is of another version, or damaged")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::Unknown),
            Err(error) => Err(error),
        }
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Begun { number } => Some(number),
            Self::Ended { number, .. } => number,
        }
    }

    /// Whether that server was the last one of the places in the record of starts. A version without numbers is not in
    /// the record.
    pub(crate) fn is_last_in(self, starts: &StartRecord) -> bool {
        let why = match (self.number(), starts.standing(self.number())) {
            (_, Ok(Standing::Last)) | (None, Ok(Standing::Unknown)) => return true,
            (_, Ok(Standing::PassedOver { by })) => format!("another server has served {by} since"),
            (Some(_), Ok(Standing::Unknown)) => "the record of starts does not have it".to_owned(),
            (_, Err(error)) => error.to_string(),
        };
        if self != Self::Unknown {
            info!(
                "the last server of the state directory may not be the last one here ({}); clients send uncommitted data \
                 again, and ask again for their open files and locks",
                output::shown(why)
            );
        }
        false
    }
}

/// The run of this server, and the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ServerRun {
    pub(crate) last: LastRun,
    pub(crate) number: u64,
    /// No server with another state directory has served these places since the last server of this directory.
    pub(crate) is_next: bool,
}

impl ServerRun {
    /// How the last server of a state directory ended.
    ///
    /// # Errors
    /// As [`LastRun::read`].
    pub(crate) fn last(state: &StateDirectory) -> io::Result<LastRun> {
        state.own_file(WRITE_VERIFIER).map_or(Ok(LastRun::Unknown), |path| LastRun::read(&path))
    }

    /// Begins the run of a server: with the number in the memory of a killed server, or with a new number. The number
    /// must be durable if the memory `is_persistent`, or if the state directory has the number of an earlier server.
    /// The state of the `last` server of the directory counts if this run `is_next`.
    ///
    /// # Errors
    /// The number cannot be made durable: a later server would mistake an earlier server's memory for this server's.
    pub(crate) fn begin(
        engine: &Engine<LinuxPlatform>,
        (state, starts): (&StateDirectory, &StartRecord),
        is_persistent: bool,
        (last, is_next): (LastRun, bool),
    ) -> Outcome<Self> {
        let header = engine.frames().memory().header();
        let number = header.number().unwrap_or_else(|| engine.platform().random_u64());
        let is_recorded = starts.try_note(number, is_persistent)?;
        match state.own_file(WRITE_VERIFIER) {
            Some(_) if last == (LastRun::Begun { number }) => {}
            Some(path) => {
                if let Err(error) = begin(&path, number) {
                    refuse_unkept(&path, &error, is_persistent)?;
                    warn!("the number of this server is not kept: {}: {error}", output::shown(path.display()));
                }
            }
            None if is_persistent => return Err(no_directory(state)),
            None => {}
        }
        header.set_number(number);
        if is_recorded {
            header.set_recorded();
        }
        Ok(Self { last, number, is_next })
    }

    /// Refuses a state directory or a record that [`Self::begin`] would refuse, as far as that shows without a change.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(crate) fn rehearse((state, starts): (&StateDirectory, &StartRecord), is_persistent: bool) -> Outcome {
        starts.rehearse(is_persistent)?;
        match state.own_file(WRITE_VERIFIER) {
            Some(path) => {
                private_directory::check_replaceable(&path).or_else(|error| refuse_unkept(&path, &error, is_persistent))
            }
            None if is_persistent && state.path().is_none() => Err(no_directory(state)),
            None => Ok(()),
        }
    }
}

/// Refuses to go on without a durable number if that could be mistaken for an earlier one.
fn refuse_unkept(path: &Path, error: &io::Error, is_persistent: bool) -> Outcome {
    if !is_persistent && path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} cannot be changed: {error}. A later server could mistake older bytes for this server's; name another \
         directory with --state",
        output::shown(path.display())
    )))
}

fn no_directory(state: &StateDirectory) -> Failure {
    Failure::failed(format!(
        "--arena takes a state directory for the number of its server ({}); name one with --state",
        output::shown(state.unwritable().unwrap_or_default())
    ))
}

/// Notes that a server begins to serve.
///
/// # Errors
/// The file can be neither replaced nor, as on a full disk, removed.
pub(crate) fn begin(path: &Path, number: u64) -> io::Result<()> {
    private_directory::replace(path, &format!("{BEGUN}\n{number:016x}")).or_else(|error| match fs::remove_file(path) {
        Ok(()) => private_directory::sync_directory_of(path),
        Err(_) => Err(error),
    })
}

/// Notes the end of a server that has no unwritten bytes and answers no more calls.
///
/// # Errors
/// When it cannot be made durable.
pub(crate) fn end(path: &Path, number: u64, verifier: [u8; 8]) -> io::Result<()> {
    let text = format!("{:016x}\n{number:016x}\n", u64::from_be_bytes(verifier));
    private_directory::leave(path, &[text.as_bytes()])
}

fn parse(text: &str) -> Option<LastRun> {
    let mut lines = text.trim_end().lines();
    let (first, number) = (lines.next()?, lines.next().map(digits));
    if lines.next().is_some() {
        return None;
    }
    match (first, number) {
        (BEGUN, number) => Some(LastRun::Begun { number: number?? }),
        (verifier, None) => Some(LastRun::Ended { verifier: digits(verifier)?.to_be_bytes(), number: None }),
        (verifier, Some(number)) => {
            Some(LastRun::Ended { verifier: digits(verifier)?.to_be_bytes(), number: Some(number?) })
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    let are_digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests;
