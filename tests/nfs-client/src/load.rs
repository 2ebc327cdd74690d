//! A steady load of one kind of call, with a fixed number in flight or a fixed rate, and its figures.
//!
//! Owns: the template of the call, the window, the pace, the clock readings, the percentiles.
//! Does not own: comparison of servers; other loads beside it.
//! Invariants: a call is the template with its number and offset patched, so that the client costs little. Every
//! reply's status is checked. Calls are numbered from 0, and their start times are found by number.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use nfs3_types::nfs3::{GETATTR3args, READ3args, WRITE3args, stable_how};
use nfs3_types::xdr_codec::Pack;

use crate::connection::{Client, Error, NFS};
use crate::procedures::{Arguments, fh, packed, write_arguments};
use crate::wire::Malformed;

/// Start times are stored by number modulo this, so no more calls than this are ever in flight.
const WINDOW_MAX: usize = 65_536;
pub(crate) const RECEIVE_BYTES: usize = 2 << 20;
/// Wait for answers after the last call was due.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Buckets of latencies: nanoseconds in steps of a 16th of a power of two.
const BUCKETS: usize = 64 * 16;

/// The kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// GETATTR of the file.
    GetAttributes,
    /// READ of this many bytes.
    Read(u32),
    /// WRITE of this many bytes.
    Write(u32, stable_how),
}

/// The way of sending the calls for which a receive makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Each with its own system call, which pushes it to the server at once. With many calls in flight that costs more
    /// than answering them does.
    Plain,
    /// All with one system call. Linux's own NFS client also hands calls to TCP like this: it corks its socket until
    /// its queue is empty.
    Batched,
}

/// The options of a load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The kind of call.
    pub kind: Kind,
    /// Calls in flight, 1 to 65,536.
    pub window: usize,
    /// The way of sending them.
    pub sending: Sending,
    /// Offsets are below this, at multiples of the call's bytes: random or sequential.
    pub file_bytes: u64,
    /// Offsets are sequential from 0.
    pub sequential: bool,
    /// The duration.
    pub duration: Duration,
    /// The seed of random offsets.
    pub seed: u64,
}

impl Load {
    /// One call in flight, at random places of a file, without an end.
    pub const fn of(kind: Kind, file_bytes: u64) -> Self {
        Self {
            kind,
            window: 1,
            sending: Sending::Plain,
            file_bytes,
            sequential: false,
            duration: Duration::MAX,
            seed: 7,
        }
    }
}

/// The figures of a load. Latencies are those of single calls, from before the send to after the receive that brought
/// the reply. Percentiles are at most 7 % too high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Calls answered.
    pub calls: u64,
    /// The duration.
    pub elapsed: Duration,
    /// Bytes of data moved.
    pub data_bytes: u64,
    /// The median.
    pub p50_ns: u64,
    /// Percentile 99.
    pub p99_ns: u64,
    /// Percentile 99.9.
    pub p999_ns: u64,
    /// The slowest call.
    pub max_ns: u64,
}

impl Report {
    /// Calls per second.
    pub fn rate(&self) -> f64 {
        self.calls as f64 / self.elapsed.as_secs_f64()
    }
}

pub(crate) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max_ns: 0 }
    }

    fn bucket(ns: u64) -> usize {
        if ns < 16 {
            return ns as usize;
        }
        let power = ns.ilog2() as usize;
        power * 16 + (ns >> (power - 4) & 15) as usize
    }

    /// The first nanosecond above a bucket.
    fn bucket_end(bucket: usize) -> u64 {
        if bucket < 16 {
            return bucket as u64 + 1;
        }
        let (power, part) = (bucket / 16, bucket as u64 % 16);
        (17 + part) << (power - 4)
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.buckets[Self::bucket(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    fn percentile(&self, per_mille: u64) -> u64 {
        let wanted = (self.count * per_mille).div_ceil(1000);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return Self::bucket_end(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    pub(crate) fn report(&self, elapsed: Duration, call_bytes: u64) -> Report {
        Report {
            calls: self.count,
            elapsed,
            data_bytes: self.count * call_bytes,
            p50_ns: self.percentile(500),
            p99_ns: self.percentile(990),
            p999_ns: self.percentile(999),
            max_ns: self.max_ns,
        }
    }
}

/// Whether a nonblocking socket only has no data or no room now.
fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Sends as much as the socket takes now, from the front of `output`.
fn write_some(socket: &mut std::net::TcpStream, output: &mut Vec<u8>) -> Result<(), Error> {
    while !output.is_empty() {
        match socket.write(output) {
            Ok(count) => drop(output.drain(..count)),
            Err(error) if is_later(&error) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The calls: one patched template.
struct Calls {
    template: Vec<u8>,
    offset_at: Option<usize>,
    bytes: u64,
    blocks: u64,
    order: Order,
    random: u64,
    next: u32,
}

/// The place of the next call.
#[derive(Clone, Copy)]
enum Order {
    Sequential,
    Random,
    /// Looks random and visits each place once. The number of places is a power of two.
    Once,
}

/// A place for each number, among a power of two of places. Different numbers have different places, since each of
/// these steps can be undone.
pub(crate) fn scattered(number: u64, blocks: u64) -> u64 {
    let half = blocks.trailing_zeros().div_ceil(2).max(1);
    let mixed = |block: u64| (block ^ block >> half).wrapping_mul(0x9e37_79b9) & (blocks - 1);
    let twice = mixed(mixed(number & (blocks - 1)));
    twice ^ twice >> half
}

const XID_AT: usize = 4;

impl Calls {
    fn new(client: &mut Client, file: &[u8], load: &Load) -> Self {
        let (procedure, arguments, bytes) = match load.kind {
            Kind::GetAttributes => (GETATTR3args::PROCEDURE, packed(&GETATTR3args { object: fh(file) }), 0),
            Kind::Read(count) => (READ3args::PROCEDURE, packed(&READ3args { file: fh(file), offset: 0, count }), count),
            Kind::Write(count, stability) => {
                let data: Vec<u8> = (0..count).map(|at| at as u8).collect();
                (WRITE3args::PROCEDURE, packed(&write_arguments(file, 0, &data, stability)), count)
            }
        };
        let (_, template) = client.record(NFS, procedure.0, &arguments);
        let offset_at = (bytes > 0).then(|| template.len() - arguments.len() + fh(file).packed_size());
        Self {
            template,
            offset_at,
            bytes: bytes.into(),
            blocks: (load.file_bytes / u64::from(bytes.max(1))).max(1),
            order: if load.sequential { Order::Sequential } else { Order::Random },
            random: load.seed | 1,
            next: 0,
        }
    }

    fn append_next(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.template);
        out[start + XID_AT..start + XID_AT + 4].copy_from_slice(&self.next.to_be_bytes());
        if let Some(at) = self.offset_at {
            let block = match self.order {
                Order::Sequential => u64::from(self.next) % self.blocks,
                Order::Once => scattered(self.next.into(), self.blocks),
                Order::Random => {
                    // xorshift64: enough to spread offsets, and cheap.
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 7;
                    self.random ^= self.random << 17;
                    self.random % self.blocks
                }
            };
            let offset = block * self.bytes;
            out[start + at..start + at + 8].copy_from_slice(&offset.to_be_bytes());
        }
        self.next = self.next.wrapping_add(1);
    }
}

impl Client {
    /// Keeps `load.window` calls on `file` in flight for `load.duration`. Meanwhile the numbers of this client's calls
    /// start at 0.
    pub fn load(&mut self, file: &[u8], load: &Load) -> Result<Report, Error> {
        self.load_at_most(file, load, u64::MAX)
    }

    /// Like [`Client::load`], but ends once `calls_max` calls are answered.
    pub fn load_at_most(&mut self, file: &[u8], load: &Load, calls_max: u64) -> Result<Report, Error> {
        let calls = Calls::new(self, file, load);
        self.run_load(calls, load, calls_max)
    }

    /// Like [`Client::load_at_most`], at places that look random and come once each. The number of places is rounded
    /// down to a power of two.
    pub fn load_each_once(&mut self, file: &[u8], load: &Load, calls_max: u64) -> Result<Report, Error> {
        let mut calls = Calls::new(self, file, load);
        (calls.blocks, calls.order) = (1 << calls.blocks.ilog2(), Order::Once);
        let calls_max = calls_max.min(calls.blocks);
        self.run_load(calls, load, calls_max)
    }

    /// Sends this many calls per second for `load.duration`, whether earlier calls are answered or not. A call's time
    /// counts from the instant at which it was due, so that a server's pause counts for every call due in it. Needs a
    /// processor of its own, since it waits by polling.
    pub fn load_at_rate(&mut self, file: &[u8], load: &Load, calls_per_s: f64) -> Result<Report, Error> {
        self.socket().set_nonblocking(true)?;
        let paced = self.run_paced(file, load, calls_per_s);
        self.socket().set_nonblocking(false)?;
        paced
    }

    fn run_paced(&mut self, file: &[u8], load: &Load, calls_per_s: f64) -> Result<Report, Error> {
        let mut calls = Calls::new(self, file, load);
        let mut latencies = Latencies::new();
        let (mut input, mut filled) = (vec![0; RECEIVE_BYTES], 0);
        let mut output = Vec::new();
        let due_ns = |number: u64| (number as f64 * 1e9 / calls_per_s) as u64;
        let total = (load.duration.as_secs_f64() * calls_per_s) as u64;
        let begin = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < total {
            let now_ns = begin.elapsed().as_nanos() as u64;
            if now_ns > due_ns(total) + PATIENCE_NS {
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
            }
            while sent < total && due_ns(sent) <= now_ns && output.is_empty() && sent - answered < WINDOW_MAX as u64 {
                calls.append_next(&mut output);
                sent += 1;
                write_some(self.socket.get_mut(), &mut output)?;
            }
            write_some(self.socket.get_mut(), &mut output)?;
            match self.socket.get_mut().read(&mut input[filled..]) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Ok(got) => filled += got,
                Err(error) if is_later(&error) => continue,
                Err(error) => return Err(error.into()),
            }
            let now_ns = begin.elapsed().as_nanos() as u64;
            let (taken, count) =
                take_replies(&input[..filled], |xid, _| latencies.add(now_ns.saturating_sub(due_ns(xid.into()))))?;
            input.copy_within(taken..filled, 0);
            (filled, answered) = (filled - taken, answered + count as u64);
        }
        Ok(latencies.report(begin.elapsed(), calls.bytes))
    }

    fn run_load(&mut self, mut calls: Calls, load: &Load, calls_max: u64) -> Result<Report, Error> {
        let window = load.window.clamp(1, WINDOW_MAX);
        let mut started = vec![0_u64; WINDOW_MAX];
        let mut latencies = Latencies::new();
        let mut input = vec![0; RECEIVE_BYTES];
        let mut filled = 0;
        let mut output = Vec::new();
        let begin = Instant::now();
        let end_ns = u64::try_from(load.duration.as_nanos()).unwrap_or(u64::MAX);
        let mut left = calls_max;
        let mut in_flight = 0;
        let mut free_slots = window;
        let mut now_ns = 0;
        loop {
            if now_ns < end_ns {
                free_slots = usize::try_from(left).map_or(free_slots, |left| free_slots.min(left));
                left -= free_slots as u64;
                self.send_calls(&mut calls, free_slots, load.sending, &mut output, &mut started, begin)?;
                in_flight += free_slots;
            }
            if in_flight == 0 {
                break;
            }
            let got = loop {
                match self.socket.get_mut().read(&mut input[filled..]) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            if got == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
            filled += got;
            now_ns = begin.elapsed().as_nanos() as u64;
            let (taken, answered) = take_replies(&input[..filled], |xid, _| {
                latencies.add(now_ns.saturating_sub(started[xid as usize % WINDOW_MAX]));
            })?;
            input.copy_within(taken..filled, 0);
            filled -= taken;
            free_slots = answered;
            in_flight -= answered;
        }
        Ok(latencies.report(begin.elapsed(), calls.bytes))
    }

    fn send_calls(
        &mut self,
        calls: &mut Calls,
        count: usize,
        sending: Sending,
        output: &mut Vec<u8>,
        started: &mut [u64],
        begin: Instant,
    ) -> Result<(), Error> {
        let now_ns = begin.elapsed().as_nanos() as u64;
        output.clear();
        for _ in 0..count {
            started[calls.next as usize % WINDOW_MAX] = now_ns;
            calls.append_next(output);
            if sending == Sending::Plain {
                self.socket.get_mut().write_all(output)?;
                output.clear();
            }
        }
        Ok(self.socket.get_mut().write_all(output)?)
    }
}

/// Reports each whole reply in `input` with its number. Returns the number of their bytes and of the replies.
pub(crate) fn take_replies(input: &[u8], mut answered: impl FnMut(u32, &[u8])) -> Result<(usize, usize), Error> {
    /// Mark, number, direction, reply status, verifier, accept status, the procedure's status.
    const HEAD_WORDS: usize = 8;
    let (mut at, mut count) = (0, 0);
    while let Some((head, _)) = input[at..].split_first_chunk::<{ HEAD_WORDS * 4 }>() {
        let word = |index: usize| {
            let bytes = [head[4 * index], head[4 * index + 1], head[4 * index + 2], head[4 * index + 3]];
            u32::from_be_bytes(bytes)
        };
        let len = 4 + (word(0) & 0x7fff_ffff) as usize;
        if !(HEAD_WORDS * 4..=RECEIVE_BYTES).contains(&len) {
            return Err(Malformed { what: "a reply of impossible length" }.into());
        }
        if input.len() - at < len {
            break;
        }
        if (word(3), word(6)) != (0, 0) {
            return Err(Error::Refused { words: (3..HEAD_WORDS).map(word).collect() });
        }
        if word(7) != 0 {
            return Err(Error::Status { procedure: "load", status: word(7) });
        }
        answered(word(1), &input[at..at + len]);
        at += len;
        count += 1;
    }
    Ok((at, count))
}
