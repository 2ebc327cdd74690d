//! The server's side of the control socket.
//!
//! Owns: the accepting thread, a thread for each connection, the bounds.
//! Does not own: the effects of a request (the [`Responder`] has them).
//! Invariants: at most [`CONNECTIONS_MAX`] connections are open at a time. A line that is too long or is no request is
//! refused; the connection goes on or closes, but the server never stops for it. A client gets its connection also when
//! the process has no descriptor left.

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use afflux_linux_device::shortage::open_with_reserve;
use rustix::io::Errno;

use super::messages::{ControlReply, ControlRequest, LINE_BYTES_MAX};

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
