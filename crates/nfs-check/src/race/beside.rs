//! Calls about names while a file is written on the same server as fast as it takes it.
//!
//! Owns: the stream beside them, its end.
//! Does not own: the calls about names (`names`).
//! Invariants: the stream has begun before the first call that is measured, and has ended before this returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nfs_client::{Client, Handle, Kind, Load, Sending, Stability};

use super::Figure;
use super::cases::{Called, own_file};
use super::names::{self, Step};
use super::servers::{Running, Servers};

const BLOCK: u32 = 256 << 10;
const FILE_BYTES: u64 = 256 << 20;
/// How long the stream runs alone first: the disk is busy by then.
const LEAD: Duration = Duration::from_millis(300);
/// Between two looks whether it is to end.
const STEP: Duration = Duration::from_millis(50);

pub(super) fn run(
    servers: &mut Servers,
    which: Running,
    (step, clients): (Step, usize),
    names: u64,
    round: usize,
) -> Called<Figure> {
    let (client, file) = own_file(servers, which, "stream")?;
    let ends = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ends);
    let stream = thread::spawn(move || write_until(client, &file, &told));
    thread::sleep(LEAD);
    // In directories of their own: those of the rows without a stream stand yet.
    let figure = names::run(servers, which, (step, clients), (names / 4).max(clients as u64), 100 + round);
    ends.store(true, Ordering::Relaxed);
    let written = stream.join().map_err(|_| std::io::Error::other("the stream's thread"))?;
    written.and(figure)
}

/// Writes the file over and over, some calls in flight, and commits as often as a client with little memory would.
fn write_until(mut client: Client, file: &Handle, ends: &AtomicBool) -> Called<()> {
    let load = Load {
        kind: Kind::Write(BLOCK, Stability::Unstable),
        window: 8,
        sending: Sending::Plain,
        file_bytes: FILE_BYTES,
        sequential: true,
        duration: STEP,
        seed: 3,
    };
    while !ends.load(Ordering::Relaxed) {
        client.load(file, &load)?;
        client.commit(file, 0, 0)?;
    }
    Ok(())
}
