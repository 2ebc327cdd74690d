//! The client of a measured copy: writes a file in windows, with a COMMIT at the end of each.
//!
//! Owns: the order of the calls, and their times.
//! Does not own: the server, the network.
//! Invariants: a copy counts only with a COMMIT that answers for all its WRITEs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use afflux_nfs_client::{Client, Error};

/// WRITEs in flight.
const IN_FLIGHT: usize = 64;
/// Most time for a reply. A COMMIT of a whole window takes seconds.
const PATIENCE: Duration = Duration::from_secs(300);
/// Most time of a server until it answers its first call.
const START: Duration = Duration::from_secs(30);

/// The addresses of a server, and its export.
#[derive(Clone, Debug)]
pub(super) struct ServerAddresses {
    pub(super) nfs: SocketAddr,
    pub(super) mount: SocketAddr,
    pub(super) export: String,
}

/// A file to be copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyOf {
    pub(super) file_bytes: u64,
    pub(super) window_bytes: u64,
    pub(super) write_bytes: u32,
}

/// The times of a copy.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) begun: Instant,
    pub(super) elapsed: Duration,
    pub(super) commits: Vec<Commit>,
}

/// A COMMIT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) begun: Instant,
    pub(super) wait: Duration,
}

/// Makes a file, writes it and removes it. Waits for a server that is starting.
pub(super) fn copy(at: &ServerAddresses, what: CopyOf) -> Result<Times, Error> {
    let root = until_it_answers(|| connect(at.mount)?.mount(&at.export))?;
    let mut client = connect(at.nfs)?;
    let file = client.create_empty(&root, b"file")?;
    let data = contents(what.window_bytes.min(what.file_bytes) as usize);
    let mut commits = Vec::new();
    let begun = Instant::now();
    let mut offset = 0;
    while offset < what.file_bytes {
        let len = (what.file_bytes - offset).min(data.len() as u64);
        let verifiers =
            client.write_unstable(&file, offset, &data[..len as usize], what.write_bytes as usize, IN_FLIGHT)?;
        let committing = Instant::now();
        let committed = client.commit(&file, 0, 0)?;
        if verifiers.iter().any(|verifier| *verifier != committed.verf) {
            return Err(std::io::Error::other("the server lost what was written before the COMMIT").into());
        }
        commits.push(Commit { begun: committing, wait: committing.elapsed() });
        offset += len;
    }
    let elapsed = begun.elapsed();
    client.remove(&root, b"file")?;
    Ok(Times { begun, elapsed, commits })
}

fn connect(address: SocketAddr) -> Result<Client, Error> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(PATIENCE))?;
    Ok(client)
}

/// Tries until a server that is starting answers.
fn until_it_answers<T>(mut ask: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match ask() {
            Err(_) if begun.elapsed() < START => std::thread::sleep(Duration::from_millis(200)),
            answer => return answer,
        }
    }
}

/// Bytes that no layer can compress.
fn contents(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}
