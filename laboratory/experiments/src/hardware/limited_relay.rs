//! A link with a bit rate that needs no network namespace: a relay of TCP connections. It passes bytes at the rate of
//! an Ethernet with that bit rate.
//!
//! Owns: the listener, the relayed connections, a bucket of tokens for each direction.
//! Does not own: the client and the server.
//! Invariants: each direction passes at most its rate and one burst. There are at most [`CONNECTIONS_MAX`] connections
//! at once. The relay does not look into the data, and a connection ends when either side ends. Nothing connects once
//! the relay is dropped, even if another process holds a copy of its listener.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::HardwareError;

/// Connections relayed at once; more are closed.
const CONNECTIONS_MAX: usize = 16;
/// Most bytes that pass without a wait after a pause, and most bytes of one read. As in `slow_network`.
const BURST_BYTES: usize = 16 << 10;
/// TCP's payload in a full frame, and the bytes of the frame that count at the rate. An MTU of 1,500 bytes has 52 bytes
/// of headers, and `tbf` counts 14 more of Ethernet.
const FRAME_PAYLOAD_BYTES: u64 = 1448;
const FRAME_BYTES: u64 = 1514;

/// A slow way to a server on this machine.
pub struct LimitedRelay {
    pub(super) listener: Arc<TcpListener>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl LimitedRelay {
    /// Relays connections from [`LimitedRelay::address`] to `server`, each direction at `bits_per_s`.
    ///
    /// # Errors
    /// When no port or no thread is available.
    pub fn new(server: SocketAddr, bits_per_s: u64) -> Result<Self, HardwareError> {
        let failed = |error: std::io::Error| HardwareError { what: format!("the relay of the slow network: {error}") };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let listener = Arc::new(listener);
        let buckets = [Bucket::new(bits_per_s), Bucket::new(bits_per_s)];
        let accepts = Arc::clone(&listener);
        let accept = move || accept(&accepts, server, &buckets);
        let accepting = std::thread::Builder::new().name("afflux-relay".to_owned()).spawn(accept).map_err(failed)?;
        Ok(Self { listener, address, accepting: Some(accepting) })
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LimitedRelay {
    fn drop(&mut self) {
        // Closing is not enough: a process that is being started elsewhere holds a copy of each descriptor until it
        // runs its program. While a copy exists, the kernel accepts connections. The shutdown also ends the wait in
        // `accept`.
        let shut = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        if let (Ok(()), Some(accepting)) = (shut, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, buckets: &[Arc<Bucket>; 2]) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Ok((client, _)) = listener.accept() {
        if open.load(Ordering::Relaxed) < CONNECTIONS_MAX {
            // If the server refuses, the client sees its connection end.
            let _ = relay(client, server, buckets, &open);
        }
    }
}

/// Starts the two directions of a connection, a thread each.
fn relay(
    client: TcpStream,
    server: SocketAddr,
    buckets: &[Arc<Bucket>; 2],
    open: &Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let directions = [(client.try_clone()?, server.try_clone()?), (server, client)];
    let counted = Arc::new(Counted::new(open));
    for ((from, to), bucket) in directions.into_iter().zip(buckets) {
        let (bucket, counted) = (Arc::clone(bucket), Arc::clone(&counted));
        std::thread::Builder::new().name("afflux-relay".to_owned()).spawn(move || {
            pass(from, to, &bucket);
            drop(counted);
        })?;
    }
    Ok(())
}

/// Passes bytes until either side ends; then both end.
fn pass(mut from: TcpStream, mut to: TcpStream, bucket: &Bucket) {
    let mut piece = [0; BURST_BYTES];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        bucket.take(read);
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// Counts a connection while it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The tokens of a direction, kept as the instant at which all taken bytes will have passed.
pub(super) struct Bucket {
    bits_per_s: u64,
    passed_at: Mutex<Instant>,
}

impl Bucket {
    pub(super) fn new(bits_per_s: u64) -> Arc<Self> {
        Arc::new(Self { bits_per_s: bits_per_s.max(1), passed_at: Mutex::new(Instant::now()) })
    }

    /// The time of `payload_bytes` on the wire.
    pub(super) fn time(&self, payload_bytes: usize) -> Duration {
        let bits = payload_bytes as u64 * 8 * FRAME_BYTES / FRAME_PAYLOAD_BYTES;
        Duration::from_secs_f64(bits as f64 / self.bits_per_s as f64)
    }

    /// Takes tokens, and waits until they are available.
    fn take(&self, payload_bytes: usize) {
        std::thread::sleep(self.due(payload_bytes, Instant::now()).saturating_duration_since(Instant::now()));
    }

    /// The instant at which tokens taken at `now` are available. Unused tokens add up to at most a burst.
    pub(super) fn due(&self, payload_bytes: usize, now: Instant) -> Instant {
        let mut passed_at = self.passed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(self.time(BURST_BYTES)).unwrap_or(now);
        *passed_at = (*passed_at).max(earliest) + self.time(payload_bytes);
        *passed_at
    }
}
