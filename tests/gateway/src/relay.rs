//! A relay of HTTP to a store: it delays each answer, counts each request, and refuses some as a store under load does.
//! It can also be as slow as a network.
//!
//! Owns: the delay, the heads of requests, the counts, the refusals.
//! Does not own: the store, the bandwidth (`link`); anything in a body.
//! Invariants: bytes pass unchanged and in order. An answer's bytes leave a fixed time after they came, so the delay
//! costs latency and no bandwidth. A body's length comes from its head alone. No byte of a refused request reaches the
//! store. A client sends its next request after an answer. The end of a connection passes on, too.

mod head;
mod link;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use head::{Head, Kind};
use link::Link;

const BUFFER_BYTES: usize = 64 << 10;
/// A part of an answer without end.
const ENDLESS_BYTES: usize = 4 << 10;
/// Parts of answers on their way on one connection.
const PARTS: usize = 4_096;

/// Requests that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// PUT, POST and COPY.
    pub puts: u64,
    /// GET and HEAD of objects.
    pub gets: u64,
    /// Names of a bucket.
    pub lists: u64,
    /// DELETE.
    pub deletes: u64,
    /// Requests that got 503 and did not pass.
    pub refused: u64,
    /// Bytes of requests, with their heads.
    pub sent_bytes: u64,
    /// Bytes of answers, with their heads.
    pub received_bytes: u64,
    /// The most PUTs and GETs at one time.
    pub side_by_side: u64,
}

impl Asked {
    /// What was asked since `before`; the most at one time is of the whole life.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            puts: self.puts - before.puts,
            gets: self.gets - before.gets,
            lists: self.lists - before.lists,
            deletes: self.deletes - before.deletes,
            refused: self.refused - before.refused,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            side_by_side: self.side_by_side,
        }
    }
}

/// The requests of a relay, and how many wait for an answer.
#[derive(Debug, Default)]
struct Counters {
    asked: Asked,
    waiting: u64,
}

/// The treatment of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Treatment {
    /// Each answer is so late.
    pub delay: Duration,
    /// All connections together have so many bytes a second in each direction; 0 is no bound.
    pub bandwidth_bytes_per_s: u64,
    /// One of so many requests is refused with 503; 0 refuses none.
    pub refuse_one_in: u64,
}

/// An answer that the relay gives in place of the store.
#[derive(Clone, Debug)]
pub enum Reply {
    /// These bytes, head and body. The connection goes on.
    Whole(Vec<u8>),
    /// These bytes, and then the end of the connection.
    Last(Vec<u8>),
    /// These bytes, and then zeros until the client ends the connection.
    Endless(Vec<u8>),
}

/// Chooses the answer to a request by its method and target, or lets it pass.
pub type Rule = Arc<dyn Fn(&str, &str) -> Option<Reply> + Send + Sync>;

/// The common state of a relay's connections.
struct Shared {
    rule: Option<Rule>,
    treatment: Treatment,
    to_store: Link,
    from_store: Link,
    seen: AtomicU64,
    counters: Arc<Mutex<Counters>>,
}

/// A part of an answer, and the time to hand it on. An empty part is the end.
type Part = (Instant, Vec<u8>);

/// A relay on a port of its own. It ends with the process.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    counters: Arc<Mutex<Counters>>,
}

impl Relay {
    /// Starts a relay to `target` whose answers are `delay` late.
    pub fn start(target: SocketAddr, delay: Duration) -> io::Result<Self> {
        Self::treating(target, Treatment { delay, ..Treatment::default() })
    }

    /// Starts a relay to `target`.
    pub fn treating(target: SocketAddr, treatment: Treatment) -> io::Result<Self> {
        Self::begin(target, treatment, None)
    }

    /// Starts a relay to `target` that answers some requests itself.
    pub fn answering(target: SocketAddr, rule: Rule) -> io::Result<Self> {
        Self::begin(target, Treatment::default(), Some(rule))
    }

    fn begin(target: SocketAddr, treatment: Treatment, rule: Option<Rule>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, counters) = (listener.local_addr()?, Arc::<Mutex<Counters>>::default());
        let of_relay = Arc::clone(&counters);
        let link = || Link::new(treatment.bandwidth_bytes_per_s);
        let shared =
            Shared { rule, treatment, to_store: link(), from_store: link(), seen: AtomicU64::new(0), counters };
        let shared = Arc::new(shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if let Ok(server) = TcpStream::connect(target) {
                        // A connection that breaks ends; its client connects again.
                        drop(connection(&client, &server, &shared));
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = server.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        Ok(Self { address, counters: of_relay })
    }

    /// The address to which requests go.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests until now.
    pub fn asked(&self) -> Asked {
        counted(&self.counters).asked
    }
}

fn counted(counters: &Mutex<Counters>) -> MutexGuard<'_, Counters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Whether the next request is refused.
    fn refuses(&self) -> bool {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        self.treatment.refuse_one_in > 0 && seen.is_multiple_of(self.treatment.refuse_one_in)
    }

    /// The relay's own answer to a request.
    fn reply(&self, head: &[u8], parsed: Head) -> Option<Reply> {
        if self.refuses() {
            return Some(Reply::Whole(parsed.refusal()));
        }
        let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
        let mut words = line.split(' ');
        self.rule.as_ref()?(words.next()?, words.next()?)
    }

    fn note(&self, kind: Kind, waits: &AtomicBool) {
        let Counters { asked, waiting } = &mut *counted(&self.counters);
        *match kind {
            Kind::Put => &mut asked.puts,
            Kind::Get => &mut asked.gets,
            Kind::List => &mut asked.lists,
            Kind::Delete => &mut asked.deletes,
        } += 1;
        if !waits.swap(true, Ordering::Relaxed) {
            *waiting += 1;
            asked.side_by_side = asked.side_by_side.max(*waiting);
        }
    }
}

/// Relays one connection until a side ends it.
fn connection(client: &TcpStream, server: &TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (sender, receiver) = sync_channel(PARTS);
    let (of_answers, waits) = (sender.clone(), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            drop(receive(server, shared, &of_answers));
            let _ = of_answers.send((Instant::now() + shared.treatment.delay, Vec::new()));
        });
        threads.spawn(|| {
            deliver(client, &receiver, &waits, &shared.counters);
            drop(receiver);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        });
        let passed = pass(client, server, shared, &waits, &sender);
        drop(sender);
        let _ = server.shutdown(Shutdown::Write);
        passed
    })
}

/// Passes requests on, or answers them itself.
fn pass(
    mut client: &TcpStream,
    mut server: &TcpStream,
    shared: &Shared,
    waits: &AtomicBool,
    answers: &SyncSender<Part>,
) -> io::Result<()> {
    let (mut buffer, mut head, mut body_left) = (vec![0; BUFFER_BYTES], Vec::new(), 0_u64);
    let mut refusal = None;
    loop {
        let bytes = client.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..bytes];
        while !rest.is_empty() {
            if body_left > 0 {
                let (of_body, next) = rest.split_at(usize::try_from(body_left).unwrap_or(usize::MAX).min(rest.len()));
                if refusal.is_none() {
                    shared.to_store.carry(of_body.len());
                    server.write_all(of_body)?;
                }
                (rest, body_left) = (next, body_left - of_body.len() as u64);
            } else {
                head.push(rest[0]);
                rest = &rest[1..];
                if !head.ends_with(b"\r\n\r\n") {
                    continue;
                }
                let parsed = Head::parse(&head)?;
                body_left = parsed.body_bytes;
                refusal = shared.reply(&head, parsed);
                if refusal.is_none() {
                    counted(&shared.counters).asked.sent_bytes += head.len() as u64 + body_left;
                    shared.note(parsed.kind, waits);
                    shared.to_store.carry(head.len());
                    server.write_all(&head)?;
                }
                head.clear();
            }
            if body_left == 0
                && let Some(refusal) = refusal.take()
            {
                counted(&shared.counters).asked.refused += 1;
                let send =
                    |part| answers.send((Instant::now() + shared.treatment.delay, part)).map_err(io::Error::other);
                match refusal {
                    Reply::Whole(answer) => send(answer)?,
                    Reply::Last(answer) => {
                        send(answer)?;
                        return send(Vec::new());
                    }
                    Reply::Endless(answer) => {
                        send(answer)?;
                        loop {
                            send(vec![0; ENDLESS_BYTES])?;
                        }
                    }
                }
            }
        }
    }
}

/// Receives parts of answers.
fn receive(mut server: &TcpStream, shared: &Shared, parts: &SyncSender<Part>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let bytes = server.read(&mut buffer)?;
        shared.from_store.carry(bytes);
        counted(&shared.counters).asked.received_bytes += bytes as u64;
        let part = (Instant::now() + shared.treatment.delay, buffer[..bytes].to_vec());
        if bytes == 0 || parts.send(part).is_err() {
            return Ok(());
        }
    }
}

/// Hands the parts on when each is due, until the end. A client that kept its connection would wait for an answer that
/// cannot come.
fn deliver(mut client: &TcpStream, parts: &Receiver<Part>, waits: &AtomicBool, counters: &Mutex<Counters>) {
    for (due, part) in parts {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if waits.swap(false, Ordering::Relaxed) {
            counted(counters).waiting -= 1;
        }
        if part.is_empty() || client.write_all(&part).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
