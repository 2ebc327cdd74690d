//! Plain requests: the speed of the store itself.
//!
//! Owns: streams of objects of 8 MiB by some connections, the round trip of a small object, alone and beside a stream.
//! Does not own: the requests (`http`).
//! Invariants: as many requests are side by side as this server had in its newest streams.

use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::http::Connection;
use super::measured::{Depths, Note, median_ms, rate};
use super::options::Scale;
use super::participant::Participant;
use super::table::Load;
use crate::failure::{Failure, host};

const OBJECT_BYTES: u64 = 8 << 20;
const SMALL_BYTES: usize = 4 << 10;

pub(super) fn run(
    participant: &mut Participant,
    scale: &Scale,
    depths: Depths,
    note: &mut Note<'_>,
) -> Result<(), Failure> {
    let address = participant.relay()?.address();
    let bucket = participant.bucket().to_owned();
    let body = vec![7; OBJECT_BYTES as usize];
    let objects = scale.stream_bytes / OBJECT_BYTES;
    let path = |number: u64| format!("{bucket}/{number}");
    let begin = Instant::now();
    side_by_side(
        depths.write,
        objects,
        || Connection::open(address),
        |connection, at| connection.put(&path(at), &body),
    )
    .map_err(host("plain PUTs"))?;
    note(Load::StreamWrite, rate(scale.stream_bytes, begin));
    let begin = Instant::now();
    side_by_side(
        depths.read,
        objects,
        || Connection::open(address),
        |connection, at| match connection.get(&path(at))? {
            OBJECT_BYTES => Ok(()),
            bytes => Err(io::Error::other(format!("object {at} has {bytes} bytes of {OBJECT_BYTES}"))),
        },
    )
    .map_err(host("plain GETs"))?;
    note(Load::StreamRead, rate(scale.stream_bytes, begin));
    let small = |connection: &mut Connection| {
        let begin = Instant::now();
        connection.put(&format!("{bucket}/small"), &body[..SMALL_BYTES]).map(|()| begin.elapsed())
    };
    let mut connection = Connection::open(address).map_err(host("a plain connection"))?;
    let times: io::Result<Vec<_>> = (0..scale.commits).map(|_| small(&mut connection)).collect();
    note(Load::Commit, median_ms(times.map_err(host("small PUTs"))?));
    let ends = AtomicBool::new(false);
    let large = |connection: &mut Connection, at| match ends.load(Ordering::Relaxed) {
        true => Ok(()),
        false => connection.put(&path(at), &body),
    };
    let stream = || side_by_side(depths.write, objects * 4, || Connection::open(address), large);
    let times: io::Result<Vec<_>> = thread::scope(|threads| {
        let stream = threads.spawn(stream);
        thread::sleep(scale.steady / 3);
        let end = Instant::now() + scale.steady;
        let times = iter::repeat_with(|| small(&mut connection)).take_while(|_| Instant::now() < end).collect();
        ends.store(true, Ordering::Relaxed);
        stream.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))).and(times)
    });
    note(Load::CommitBesideStream, median_ms(times.map_err(host("small PUTs beside large ones"))?));
    Ok(())
}

/// Does `count` pieces of work by `width` threads, each with its own connection.
fn side_by_side<C>(
    width: u64,
    count: u64,
    open: impl Fn() -> io::Result<C> + Sync,
    work: impl Fn(&mut C, u64) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let next = AtomicU64::new(0);
    let of_thread = || {
        let mut connection = open()?;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(&mut connection, at)?;
        }
    };
    thread::scope(|threads| {
        let all: Vec<_> = (0..width.max(1)).map(|_| threads.spawn(of_thread)).collect();
        let ended = |_| Err(io::Error::other("a thread panicked"));
        all.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(ended))
    })
}
