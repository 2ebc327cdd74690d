//! Clients that write, commit and read files of their own until their server is killed.
//!
//! Owns: the draw of calls, the clients' threads, the moment of the kill.
//! Does not own: the record of acknowledged bytes (`acknowledged`).
//! Invariants: the kill comes after a number of answers that the seed decides. A fault before the kill ends the run.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use afflux_nfs_client::{Client, Error};

use super::acknowledged::File;
use super::killed::{Kill, Killed};
use crate::failure::{Failure, call};
use crate::random::Random;

/// Of each client.
pub(super) const FILES: usize = 4;
/// Answers before the kill.
const ANSWERS_MIN: u64 = 200;
const ANSWERS_MORE: u64 = 400;
const FILE_BYTES: u64 = 2 << 20;
const WRITE_BYTES: u64 = 64 << 10;
/// One of so many calls is a COMMIT, and one a READ.
const CALLS_FOR_COMMIT: u64 = 32;
/// An answer takes less, unless the server is gone.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Loads the server until its kill.
pub(super) fn until_killed(
    nfs: SocketAddr,
    files: &mut [File],
    seed: u64,
    kill: &mut Kill<'_>,
) -> Result<Killed, Failure> {
    let mut random = Random::new(seed);
    let answers = ANSWERS_MIN + random.below(ANSWERS_MORE);
    let (told, heard) = channel();
    thread::scope(|threads| {
        for files in files.chunks_mut(FILES) {
            let (told, random) = (told.clone(), Random::new(random.next()));
            threads.spawn(move || work(nfs, files, random, &told));
        }
        drop(told);
        let answers: Result<(), Error> = heard.iter().take(answers as usize).collect();
        answers.map_err(call("the load"))?;
        kill()
    })
}

/// Runs calls one after the other until one fails, and tells of each. Nobody listens after the kill.
fn work(nfs: SocketAddr, files: &mut [File], mut random: Random, told: &Sender<Result<(), Error>>) {
    let connected = Client::connect(nfs).and_then(|mut client| {
        client.set_timeout(Some(ANSWERED_WITHIN))?;
        Ok(client)
    });
    let mut client = match connected {
        Ok(client) => client,
        Err(error) => return drop(told.send(Err(error))),
    };
    loop {
        let file = random.below(files.len() as u64) as usize;
        let done = step(&mut files[file], &mut client, &mut random);
        let failed = done.is_err();
        let _ = told.send(done);
        if failed {
            return;
        }
    }
}

fn step(file: &mut File, client: &mut Client, random: &mut Random) -> Result<(), Error> {
    let (offset, len) = (random.below(FILE_BYTES) as usize, 1 + random.below(WRITE_BYTES) as usize);
    match random.below(CALLS_FOR_COMMIT) {
        0 => file.commit(client),
        1 => file.check(client, offset.min(file.len()), len),
        _ => {
            let bytes = (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(len).collect();
            file.write(client, offset, bytes)
        }
    }
}
