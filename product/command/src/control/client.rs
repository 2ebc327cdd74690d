//! The client's side of the control socket.
//!
//! Owns: one connection, requests out, replies in.
//! Does not own: finding the server (`socket_paths`), and checking its owner (`trust`).
//! Invariants: a server that goes away is an error, never a hang. A reply has a time limit; a drain goes on as long as
//! the server reports progress.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::messages::{ControlReply, ControlRequest, LINE_BYTES_MAX, Report};
use super::socket_paths;
use crate::configuration;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;

/// Longest silence of a server before the client gives up.
const SILENCE_MAX: Duration = Duration::from_secs(30);

pub(crate) struct ControlClient {
    shown: String,
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// Connects to the server at the socket `named`, or to the only one that runs.
    pub(crate) fn connect(named: Option<&Path>) -> Outcome<Self> {
        let from_environment = configuration::control_from_environment();
        let (path, stream) = socket_paths::connect(named.or(from_environment.as_deref()))?;
        Self::over(&path, stream)
    }

    /// Uses a connection to the socket at `path`.
    pub(crate) fn over(path: &Path, stream: UnixStream) -> Outcome<Self> {
        let shown = output::shown(path.display());
        let limited =
            stream.set_read_timeout(Some(SILENCE_MAX)).and_then(|()| stream.set_write_timeout(Some(SILENCE_MAX)));
        limited.or_failed(format_args!("no server answers on {shown}"))?;
        Ok(Self { shown, stream: BufReader::new(stream) })
    }

    /// Sends a request; the replies come from [`Client::reply`].
    pub(crate) fn ask(&mut self, request: &ControlRequest) -> Outcome {
        let mut line = serde_json::to_vec(request).map_err(|error| self.broken(&error))?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(|error| self.broken(&error))
    }

    /// The next reply; a refusal is an error.
    pub(crate) fn reply(&mut self) -> Outcome<ControlReply> {
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read {
            Err(error) => return Err(self.broken(&error)),
            Ok(0) => return Err(self.broken(&"it closed the connection")),
            Ok(_) => {}
        }
        match serde_json::from_slice(&line).map_err(|error| self.broken(&error))? {
            ControlReply::Refused { reason, wrong_use: true } => Err(Failure::WrongUse(reason)),
            ControlReply::Refused { reason, wrong_use: false } => Err(Failure::Failed(reason)),
            reply => Ok(reply),
        }
    }

    /// Asks for a report.
    pub(crate) fn report(&mut self) -> Outcome<Report> {
        self.ask(&ControlRequest::Stat)?;
        match self.reply()? {
            ControlReply::Report(report) => Ok(*report),
            other => Err(self.unexpected(&other)),
        }
    }

    /// The error for a reply to another request.
    pub(crate) fn unexpected(&self, reply: &ControlReply) -> Failure {
        self.broken(&format!("it answered {reply:?}"))
    }

    fn broken(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::failed(format!("the server on {} does not answer: {why}", self.shown))
    }
}
