//! The control socket: how the other subcommands talk to a running server.
//!
//! Owns: the messages, the sockets' paths, the checks of trust; here both sides of a connection: the server's accepting
//! thread with a thread for each connection, and the client's requests and replies.
//! Does not own: the effects of a request (`serve`), how people see an answer (`stat`, `set`, `drain`).
//! Invariants: each request and each reply is one JSON object on one line; the length of a line and the number of
//! connections are bounded; only the serving user can connect. A line that is too long or is no request is refused; the
//! connection goes on or closes, but the server never stops for it. A client gets its connection also when the process
//! has no free descriptor. A server that goes away is an error for its client, never a hang. A reply has a time limit;
//! a drain goes on as long as the server reports progress.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use afflux_linux_device::shortage::open_with_reserve;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;
use rustix::io::Errno;

use crate::configuration;
use crate::control::messages::{ControlReply, ControlRequest, LINE_BYTES_MAX, Report};

pub(crate) mod messages;
pub(crate) mod socket_paths;
pub(crate) mod trust;

const CONNECTIONS_MAX: usize = 16;

/// Time until the server drops a client that does not take its reply.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Carries requests out.
pub(crate) trait Responder: Send + Sync + 'static {
    /// Answers a request with one or more replies, in order. An error of `send` ends it.
    fn respond(&self, request: ControlRequest, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()>;
}

/// Serves the socket on its own threads for as long as the process runs.
pub(crate) fn start(listener: UnixListener, responder: Arc<dyn Responder>) -> io::Result<()> {
    let open = Arc::new(());
    let accept = move || {
        loop {
            let accept = || listener.accept().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            // An error concerns only one client's connection, or descriptors that are free again later.
            let Ok((stream, _)) = open_with_reserve(accept) else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            // Each thread holds a clone, and so does this one.
            let is_room = Arc::strong_count(&open) <= CONNECTIONS_MAX;
            let (held, responder) = (Arc::clone(&open), Arc::clone(&responder));
            let _ = thread::Builder::new().name("control".to_owned()).spawn(move || {
                let _ = connection(stream, is_room, responder.as_ref());
                drop(held);
            });
        }
    };
    thread::Builder::new().name("control".to_owned()).spawn(accept).map(drop)
}

fn connection(stream: UnixStream, is_room: bool, responder: &dyn Responder) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    // One descriptor does for both directions: there may be no other.
    let mut output = &stream;
    let mut send = move |reply: ControlReply| {
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        output.write_all(&line)
    };
    if !is_room {
        return send(refused(format!("{CONNECTIONS_MAX} control connections are open already")));
    }
    let mut input = BufReader::new(&stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") && read as u64 == LINE_BYTES_MAX {
            return send(refused(format!("a request is longer than {LINE_BYTES_MAX} bytes")));
        }
        match serde_json::from_slice(&line) {
            Ok(request) => responder.respond(request, &mut send)?,
            Err(error) => send(refused(format!("not a request: {error}")))?,
        }
    }
}

fn refused(reason: String) -> ControlReply {
    ControlReply::Refused { reason, wrong_use: true }
}

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

#[cfg(test)]
mod tests;
