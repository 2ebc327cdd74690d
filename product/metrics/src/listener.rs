//! Answers connections.
//!
//! Every peer that reaches the address may connect, send any bytes as slowly as it likes, and read nothing. So one
//! thread polls a bounded number of connections, each of which has a bounded time. If there are too many, the one that
//! has been open longest is closed. A scraper sends its request at once and is answered at once, so that its connection
//! is never the one.
//!
//! Owns: the socket, the thread, the connections, the last text; whether a request is answered, the head of the answer.
//! Does not own: the figures.
//! Invariants: at most [`Bounds::connections`] connections, none for longer than [`Bounds::lasting`]; each holds no
//! more than a head and an answer. Without connections the thread sleeps. A head longer than [`HEAD_BYTES_MAX`], or one
//! that makes no sense, is answered with an error at once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Time before another attempt after a failure of the host, such as a lack of descriptors.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(100);

/// Most bytes that are read after a request.
const UNASKED_BYTES_MAX: usize = 256 << 10;

/// Bounds on strangers' use.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    connections: usize,
    /// From its first byte to the last of its answer.
    lasting: Duration,
    /// Time for which a text is used again.
    reuse: Duration,
}

const BOUNDS: Bounds = Bounds { connections: 16, lasting: Duration::from_secs(10), reuse: Duration::from_millis(250) };

/// A socket that listens, and answers once it is started.
#[derive(Debug)]
pub struct MetricsListener {
    socket: TcpListener,
}

impl MetricsListener {
    /// Listens at the address; port 0 takes a free one. No connection is answered yet.
    ///
    /// # Errors
    /// When the host refuses, for example because the port is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// When the host does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers on a thread of its own for as long as the process runs. `figures` makes the text; that thread calls it,
    /// a few times a second at most.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub fn start(self, figures: impl Fn() -> String + Send + 'static) -> io::Result<()> {
        self.start_within(BOUNDS, figures)
    }

    fn start_within(self, bounds: Bounds, figures: impl Fn() -> String + Send + 'static) -> io::Result<()> {
        let body = move || Service { socket: self.socket, bounds, figures, last: None, connections: Vec::new() }.run();
        thread::Builder::new().name("metrics".to_owned()).spawn(body).map(drop)
    }
}

struct Service<F> {
    socket: TcpListener,
    bounds: Bounds,
    figures: F,
    /// The text, and when it was made.
    last: Option<(Instant, String)>,
    /// The connections, the one open longest first.
    connections: Vec<Connection>,
}

impl<F: Fn() -> String> Service<F> {
    fn run(mut self) {
        loop {
            // A failure of poll may persist; the pause keeps it from taking a whole CPU.
            if self.wait().is_err() {
                thread::sleep(SHORTAGE_PAUSE);
            }
            self.accept();
            self.serve();
        }
    }

    /// Waits until there is something to do, or a connection's time is over.
    fn wait(&self) -> io::Result<()> {
        let listener = PollFd::new(&self.socket, PollFlags::IN);
        let connections = self.connections.iter().map(|it| PollFd::new(&it.stream, it.waits_for()));
        let mut all: Vec<PollFd<'_>> = [listener].into_iter().chain(connections).collect();
        let oldest = self.connections.first();
        let left = oldest.map(|oldest| self.bounds.lasting.saturating_sub(oldest.since.elapsed()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut all, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) {
        // At most as many at a time as there are slots.
        for _ in 0..self.bounds.connections {
            match self.socket.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.connections.len() >= self.bounds.connections {
                        self.connections.remove(0);
                    }
                    self.connections.push(Connection::new(stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The connection is gone again, or the host has no descriptors.
                Err(_) => return thread::sleep(SHORTAGE_PAUSE),
            }
        }
    }

    fn serve(&mut self) {
        let Self { bounds, figures, last, connections, .. } = self;
        let mut made = || {
            let now = Instant::now();
            if let Some((at, text)) = &*last
                && now.duration_since(*at) < bounds.reuse
            {
                return text.clone();
            }
            last.insert((now, figures())).1.clone()
        };
        connections.retain_mut(|it| it.since.elapsed() < bounds.lasting && it.advance(&mut made).is_ok());
    }
}

struct Connection {
    stream: TcpStream,
    since: Instant,
    head: Vec<u8>,
    /// The bytes to send; none while the request is incomplete.
    answer: Option<Vec<u8>>,
    sent: usize,
    /// Bytes that came after the request.
    unasked: usize,
}

/// The connection must be closed.
struct ConnectionOver;

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), head: Vec::new(), answer: None, sent: 0, unasked: 0 }
    }

    fn waits_for(&self) -> PollFlags {
        match &self.answer {
            Some(answer) if self.sent < answer.len() => PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Does all work that needs no waiting.
    fn advance(&mut self, figures: &mut impl FnMut() -> String) -> Result<(), ConnectionOver> {
        while self.answer.is_none() {
            let mut bytes = [0; 2048];
            let room = bytes.len().min(HEAD_BYTES_MAX - self.head.len());
            match self.received(&mut bytes[..room])? {
                0 => return Ok(()),
                count => self.head.extend_from_slice(&bytes[..count]),
            }
            let asked = parse(&self.head);
            if asked != ScrapeRequest::More {
                self.answer = Some(answer(asked, &mut *figures));
                self.head = Vec::new();
            }
        }
        self.send()
    }

    /// The number of bytes that came; none if there are none now.
    fn received(&mut self, into: &mut [u8]) -> Result<usize, ConnectionOver> {
        match self.stream.read(into) {
            Ok(0) => Err(ConnectionOver),
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            Err(_) => Err(ConnectionOver),
        }
    }

    /// Sends, and then reads further bytes until the peer closes. An earlier close would be a reset, which could
    /// discard the answer.
    fn send(&mut self) -> Result<(), ConnectionOver> {
        let Some(answer) = &mut self.answer else { return Ok(()) };
        while self.sent < answer.len() {
            match self.stream.write(&answer[self.sent..]) {
                Ok(0) => return Err(ConnectionOver),
                Ok(count) => self.sent += count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
                Err(_) => return Err(ConnectionOver),
            }
            if self.sent == answer.len() {
                (*answer, self.sent) = (Vec::new(), 0);
                self.stream.shutdown(Shutdown::Write).map_err(|_| ConnectionOver)?;
            }
        }
        self.unasked += self.received(&mut [0; 2048])?;
        if self.unasked > UNASKED_BYTES_MAX { Err(ConnectionOver) } else { Ok(()) }
    }
}

/// Longest head of a request, line and headers.
pub(crate) const HEAD_BYTES_MAX: usize = 8 << 10;

/// The kinds of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScrapeRequest {
    /// The head is still incomplete.
    More,
    Metrics {
        /// Whether only the head of the answer is wanted.
        head_only: bool,
    },
    /// The page that says where the figures are.
    Index,
    /// A missing page, or an invalid request.
    Refused(RequestRefusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestRefusal {
    NotHttp,
    NoSuchPath,
    NoSuchMethod,
    TooLong,
    OtherHost,
}

/// The request in the bytes so far.
pub(crate) fn parse(bytes: &[u8]) -> ScrapeRequest {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let line_end = head.iter().position(|byte| *byte == b'\n');
    let Some(line_end) = line_end else {
        return if bytes.len() >= HEAD_BYTES_MAX {
            ScrapeRequest::Refused(RequestRefusal::TooLong)
        } else {
            ScrapeRequest::More
        };
    };
    let first = first_line(&head[..line_end]);
    if first == ScrapeRequest::Refused(RequestRefusal::NotHttp) {
        return first;
    }
    let ends = |window: &[u8]| window == b"\n\r\n" || window.starts_with(b"\n\n");
    let has_ended = head[line_end..].windows(3).any(ends) || head.ends_with(b"\n\n");
    match has_ended {
        true if host(&head[line_end..]).is_some_and(|host| !is_this_machine(host)) => {
            ScrapeRequest::Refused(RequestRefusal::OtherHost)
        }
        true => first,
        false if bytes.len() >= HEAD_BYTES_MAX => ScrapeRequest::Refused(RequestRefusal::TooLong),
        false => ScrapeRequest::More,
    }
}

/// The host that the headers name, without its port.
fn host(headers: &[u8]) -> Option<&[u8]> {
    let mut lines = headers.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        name.eq_ignore_ascii_case(b"host").then_some(value[1..].trim_ascii())
    })?;
    let is_port = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit);
    let colon = value.iter().rposition(|byte| *byte == b':').filter(|at| is_port(&value[at + 1..]));
    Some(colon.map_or(value, |at| &value[..at]))
}

/// Whether a name is an address, or this machine's own name. A page in a browser on this machine could make any other
/// name lead here, and would read the figures as its own.
fn is_this_machine(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let own = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let (host, own) = (host.trim_end_matches('.').to_lowercase(), own.trim_end_matches('.'));
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    // With its domain, or without, as a scraper in the same network names it.
    !own.is_empty() && (host == own || host == first(own) || !own.contains('.') && first(&host) == own)
}

fn first_line(line: &[u8]) -> ScrapeRequest {
    let not_http = ScrapeRequest::Refused(RequestRefusal::NotHttp);
    let Ok(line) = str::from_utf8(line) else { return not_http };
    let parts: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let [method, target, version] = parts[..] else { return not_http };
    if !version.starts_with("HTTP/1.") {
        return not_http;
    }
    let place = target.split('?').next().unwrap_or_default();
    match (method, place) {
        ("GET" | "HEAD", "/metrics") => ScrapeRequest::Metrics { head_only: method == "HEAD" },
        ("GET" | "HEAD", "/") => ScrapeRequest::Index,
        ("GET" | "HEAD", _) => ScrapeRequest::Refused(RequestRefusal::NoSuchPath),
        _ => ScrapeRequest::Refused(RequestRefusal::NoSuchMethod),
    }
}

/// The whole answer. `figures` is called only if they are wanted.
pub(crate) fn answer(asked: ScrapeRequest, figures: impl FnOnce() -> String) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked {
        ScrapeRequest::Metrics { .. } => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", figures()),
        ScrapeRequest::Index => ("200 OK", plain, "Afflux: figures for Prometheus are at /metrics.\n".to_owned()),
        ScrapeRequest::More | ScrapeRequest::Refused(RequestRefusal::NotHttp) => {
            ("400 Bad Request", plain, "not HTTP/1\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::NoSuchPath) => {
            ("404 Not Found", plain, "figures are at /metrics\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::NoSuchMethod) => {
            ("405 Method Not Allowed\r\nAllow: GET, HEAD", plain, "GET /metrics\n".to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::OtherHost) => {
            let body = "this is not the host that was asked for: ask by its address or its own name\n";
            ("421 Misdirected Request", plain, body.to_owned())
        }
        ScrapeRequest::Refused(RequestRefusal::TooLong) => {
            ("431 Request Header Fields Too Large", plain, format!("a head has at most {HEAD_BYTES_MAX} bytes\n"))
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
        X-Content-Type-Options: nosniff\r\n\r\n"
    );
    let mut answer = head.into_bytes();
    if asked != (ScrapeRequest::Metrics { head_only: true }) {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}

#[cfg(test)]
mod tests;
