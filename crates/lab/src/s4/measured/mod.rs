//! The measured part of s4: the real server and a client in network namespaces with a slow link between
//! them, on a slow disk, beside nfs-ganesha.
//!
//! Owns: which servers are measured with which files, the rows.
//! Does not own: the hardware (`crate::hardware`), starting servers (`servers`).
//! Invariants: every server writes to the same disk, one after the other, and is stopped before the next;
//! a copy counts only with a COMMIT that answers for all its WRITEs.

mod servers;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nfs_client::{Client, Error};
use report::{Fields, Row, Source};

use super::plan::Plan;
use crate::experiment::{LabError, Watch};
use crate::hardware::{DiskRates, SlowDisk, SlowNetwork};
use crate::machine::rounded;
use servers::{Ganesha, Running, Settings};

/// WRITEs in flight.
const IN_FLIGHT: usize = 64;
/// How long a server may take for a reply. A COMMIT of a whole window takes seconds.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a server may take to answer its first call.
const START: Duration = Duration::from_secs(30);
/// The name of our server in rows, and of the other.
const AFFLUX: &str = "afflux";
const AFFLUX_PLAIN: &str = "afflux, no settings";
const GANESHA: &str = "nfs-ganesha";

/// One copy of one file.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) server: &'static str,
    /// `None`: the server has no such knob, or was left as it starts.
    pub(super) centisecs: Option<u64>,
    pub(super) file_bytes: u64,
    elapsed: Duration,
    commit_waits: Vec<Duration>,
}

/// What was measured, and what could not be.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) copies: Vec<Measured>,
    pub(super) notes: Vec<String>,
}

impl Measured {
    pub(super) fn is_ganesha(&self) -> bool {
        self.server == GANESHA
    }

    pub(super) fn rate_mb_per_s(&self) -> f64 {
        self.file_bytes as f64 / 1e6 / self.elapsed.as_secs_f64()
    }

    /// The mean of the COMMITs, in milliseconds.
    pub(super) fn commit_wait_ms(&self) -> f64 {
        self.commit_waits.iter().sum::<Duration>().as_secs_f64() * 1e3 / self.commit_waits.len().max(1) as f64
    }

    fn row(&self, plan: &Plan) -> Row {
        Row {
            experiment: "s4".to_owned(),
            variant: self.server.to_owned(),
            params: Fields::new()
                .with("centisecs", self.centisecs)
                .with("write_bytes", write_bytes(plan))
                .with("size_bytes", self.file_bytes)
                .with("client_window_bytes", plan.window_bytes)
                .with("link_bits_per_s", plan.link.bits_per_second)
                .with("disk_bytes_per_s", plan.disk_bytes_per_s),
            metrics: Fields::new()
                .with("rate_mb_per_s", rounded(self.rate_mb_per_s(), 3))
                .with("commit_wait_ms_mean", rounded(self.commit_wait_ms(), 3))
                .with("commits", self.commit_waits.len())
                .with("elapsed_ns", self.elapsed.as_nanos() as u64),
            published: Fields::new(),
            source: Source::Measured,
        }
    }
}

/// A server is measured with one size of WRITE, since the client gathers.
fn write_bytes(plan: &Plan) -> u32 {
    plan.write_bytes.unwrap_or(32 << 10)
}

/// A folder of our own on a disk, removed with all that is in it.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Failed(error.to_string())
}

/// Measures all servers with a file of one window and, unless `quick`, with one of the plan's size.
pub(super) fn run(plan: &Plan, quick: bool, watch: &mut dyn Watch, from: f64) -> Result<Outcome, LabError> {
    let sizes = if quick { vec![plan.window_bytes] } else { vec![plan.window_bytes, plan.file_bytes] };
    let scratch = Scratch(std::env::temp_dir().join(format!("afflux-s4-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0).map_err(failed)?;
    let network = SlowNetwork::new(plan.link.bits_per_second).map_err(failed)?;
    // A file at a time, the journal, and what a file system keeps for itself.
    let bytes = sizes.iter().max().map_or(0, |bytes| bytes / 4 * 5) + (512 << 20);
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(plan.disk_bytes_per_s) };
    let disk = SlowDisk::new(&scratch.0, bytes, rates).map_err(failed)?;
    let export = disk.path().join("exp");
    std::fs::create_dir(&export).map_err(failed)?;

    let bench = Bench { plan, network: &network, directory: &export, scratch: &scratch.0, sizes: &sizes };
    let mut outcome = Outcome::default();
    let all = plan.centisecs.len() + 2;
    let knobs = plan.centisecs.iter().map(|&centisecs| Some(centisecs)).chain([None]);
    for (done, centisecs) in std::iter::once(None).chain(knobs.map(Some)).enumerate() {
        let name = if centisecs.is_some() { AFFLUX } else { GANESHA };
        watch.step(&format!("measuring {name}"), from + (1.0 - from) * done as f64 / all as f64);
        let copies = match centisecs {
            None => bench.ganesha(&mut outcome.notes)?,
            Some(centisecs) => bench.afflux(centisecs)?,
        };
        copies.iter().for_each(|measured| watch.row(&measured.row(plan)));
        outcome.copies.extend(copies);
    }
    Ok(outcome)
}

/// What all servers are measured on.
struct Bench<'a> {
    plan: &'a Plan,
    network: &'a SlowNetwork,
    /// What is served.
    directory: &'a Path,
    scratch: &'a Path,
    sizes: &'a [u64],
}

/// Where a server answers, and for what.
struct At<'a> {
    nfs: u16,
    mount: u16,
    export: &'a str,
}

impl Bench<'_> {
    fn ganesha(&self, notes: &mut Vec<String>) -> Result<Vec<Measured>, LabError> {
        let server = match Ganesha::start(self.network, self.scratch, self.directory) {
            Ok(server) => server,
            Err(missing) => {
                notes.push(format!("{GANESHA} was not measured: {missing}."));
                return Ok(Vec::new());
            }
        };
        let at = At { nfs: Ganesha::NFS_PORT, mount: Ganesha::MOUNT_PORT, export: &self.directory.to_string_lossy() };
        let copies = self.copies(GANESHA, None, &at);
        drop(server);
        copies
    }

    /// Our server with the knob at `centisecs` and the thresholds of the simulated one, or as it starts.
    fn afflux(&self, centisecs: Option<u64>) -> Result<Vec<Measured>, LabError> {
        let settings = centisecs.map(|centisecs| Settings { centisecs, memory_bytes: self.plan.memory_bytes });
        let server = Running::afflux(self.network, self.scratch, self.directory, settings).map_err(failed)?;
        let name = if centisecs.is_some() { AFFLUX } else { AFFLUX_PLAIN };
        let at = At { nfs: Running::PORT, mount: Running::PORT, export: &server.export };
        let copies = self.copies(name, centisecs, &at);
        drop(server);
        copies
    }

    fn copies(&self, server: &'static str, centisecs: Option<u64>, at: &At<'_>) -> Result<Vec<Measured>, LabError> {
        let copy_all = || {
            let root = until_it_answers(|| connect(at.mount)?.mount(at.export))?;
            let copy = |bytes: &u64| self.copy(at.nfs, &root, *bytes);
            self.sizes.iter().map(copy).collect::<Result<Vec<_>, Error>>()
        };
        let copied = self.network.as_client(copy_all).map_err(failed)?;
        let copied = copied.map_err(|error| failed(format!("{server}: {error}")))?;
        let sizes = self.sizes.iter().copied();
        Ok(sizes
            .zip(copied)
            .map(|(file_bytes, (elapsed, commit_waits))| Measured {
                server,
                centisecs,
                file_bytes,
                elapsed,
                commit_waits,
            })
            .collect())
    }

    /// Writes a file by windows, each with a COMMIT at its end, and removes it.
    fn copy(&self, port: u16, root: &[u8], bytes: u64) -> Result<(Duration, Vec<Duration>), Error> {
        let mut client = connect(port)?;
        let name = format!("file-{bytes}");
        let file = client.create_empty(root, name.as_bytes())?;
        let data = contents(self.plan.window_bytes.min(bytes) as usize);
        let mut waits = Vec::new();
        let begun = Instant::now();
        let mut offset = 0;
        while offset < bytes {
            let len = (bytes - offset).min(data.len() as u64);
            let block = write_bytes(self.plan) as usize;
            let verifiers = client.write_unstable(&file, offset, &data[..len as usize], block, IN_FLIGHT)?;
            let committing = Instant::now();
            let committed = client.commit(&file, 0, 0)?;
            if verifiers.iter().any(|verifier| *verifier != committed.verifier) {
                return Err(std::io::Error::other("the server lost what was written before the COMMIT").into());
            }
            waits.push(committing.elapsed());
            offset += len;
        }
        let elapsed = begun.elapsed();
        client.remove(root, name.as_bytes())?;
        Ok((elapsed, waits))
    }
}

fn connect(port: u16) -> Result<Client, Error> {
    let mut client = Client::connect((SlowNetwork::SERVER_ADDRESS, port))?;
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

/// Bytes that no layer makes smaller.
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
