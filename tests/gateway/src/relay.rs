//! A relay of HTTP to a store: it delays each answer and counts each request.
//!
//! Owns: the delay, the heads of requests, the counts.
//! Does not own: the store; anything in a body.
//! Invariants: bytes pass unchanged and in order. An answer's bytes leave a fixed time after they came, so the delay
//! costs latency and no bandwidth. A body's length comes from its head alone.

mod head;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use head::{Head, Kind};

const BUFFER_BYTES: usize = 64 << 10;
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
            side_by_side: self.side_by_side,
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    waiting: AtomicU64,
    waiting_max: AtomicU64,
}

/// A relay on a port of its own. It ends with the process.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    counters: Arc<Counters>,
}

impl Relay {
    /// Starts a relay to `target` whose answers are `delay` late.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(target: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, counters) = (listener.local_addr()?, Arc::<Counters>::default());
        let of_thread = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counters = Arc::clone(&of_thread);
                thread::spawn(move || {
                    if let Ok(server) = TcpStream::connect(target) {
                        // A connection that breaks ends; its client connects again.
                        drop(connection(&client, &server, delay, &counters));
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = server.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        Ok(Self { address, counters })
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
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { puts, gets, lists, deletes, waiting: _, waiting_max } = &*self.counters;
        Asked {
            puts: read(puts),
            gets: read(gets),
            lists: read(lists),
            deletes: read(deletes),
            side_by_side: read(waiting_max),
        }
    }
}

/// Relays one connection until a side ends it.
fn connection(client: &TcpStream, server: &TcpStream, delay: Duration, counters: &Arc<Counters>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (sender, receiver) = sync_channel(PARTS);
    let waits = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            drop(receive(server, delay, &sender));
            drop(sender);
        });
        threads.spawn(|| {
            deliver(client, &receiver, &waits, counters);
            drop(receiver);
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        });
        let passed = pass(client, server, &waits, counters);
        let _ = server.shutdown(Shutdown::Write);
        passed
    })
}

/// Passes requests on, and counts them.
fn pass(mut client: &TcpStream, mut server: &TcpStream, waits: &AtomicBool, counters: &Counters) -> io::Result<()> {
    let (mut buffer, mut head, mut body_left) = (vec![0; BUFFER_BYTES], Vec::new(), 0_u64);
    loop {
        let bytes = client.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..bytes];
        while !rest.is_empty() {
            if body_left > 0 {
                let of_body = usize::try_from(body_left).unwrap_or(usize::MAX).min(rest.len());
                rest = &rest[of_body..];
                body_left -= of_body as u64;
                continue;
            }
            head.push(rest[0]);
            rest = &rest[1..];
            if head.ends_with(b"\r\n\r\n") {
                let parsed = Head::parse(&head)?;
                body_left = parsed.body_bytes;
                head.clear();
                note(parsed.kind, waits, counters);
            }
        }
        server.write_all(&buffer[..bytes])?;
    }
}

fn note(kind: Kind, waits: &AtomicBool, counters: &Counters) {
    let counter = match kind {
        Kind::Put => &counters.puts,
        Kind::Get => &counters.gets,
        Kind::List => &counters.lists,
        Kind::Delete => &counters.deletes,
    };
    counter.fetch_add(1, Ordering::Relaxed);
    if !waits.swap(true, Ordering::Relaxed) {
        let waiting = counters.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        counters.waiting_max.fetch_max(waiting, Ordering::Relaxed);
    }
}

/// Receives parts of answers.
fn receive(mut server: &TcpStream, delay: Duration, parts: &SyncSender<(Instant, Vec<u8>)>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let bytes = server.read(&mut buffer)?;
        let part = (Instant::now() + delay, buffer[..bytes].to_vec());
        if bytes == 0 || parts.send(part).is_err() {
            return Ok(());
        }
    }
}

/// Hands the parts on when each is due.
fn deliver(mut client: &TcpStream, parts: &Receiver<(Instant, Vec<u8>)>, waits: &AtomicBool, counters: &Counters) {
    for (due, part) in parts {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if waits.swap(false, Ordering::Relaxed) {
            counters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        if client.write_all(&part).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
