//! Random 4 KiB reads of data in no cache: through a server, and through a bare loop over io_uring.
//!
//! Owns: the files, their absence from caches, the bare loop's process.
//! Does not own: the load (`nfs-client`), the loop (`product/linux-device/examples/bare_reads.rs`).
//! Invariants: each run has its own file, created on the host and dropped from its cache; each page is read once. The
//! loop gets the same calls from the same client and runs on the servers' CPU.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use afflux_nfs_client::{Client, Kind, Load};
use afflux_rig::{Ending, Measurement};
use rustix::fs::{Advice, fadvise};

use super::figure::Figure;
use super::scale::{BLOCK, Scale, WINDOW};
use super::servers::{Called, Running, Servers};

/// Creates a file that is on the disk and in no cache.
fn made(export: &Path, name: &str, bytes: u64) -> io::Result<PathBuf> {
    let path = export.join(name);
    let mut file = File::create(&path)?;
    // The bytes differ everywhere, since some disks store uniform blocks separately.
    let piece: Vec<u8> = (0..1_u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    for _ in 0..bytes >> 20 {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(path)
}

fn load(scale: &Scale) -> Load {
    Load { window: WINDOW, ..Load::of(Kind::Read(BLOCK), scale.cold_bytes) }
}

pub(super) fn run(servers: &mut Servers, which: Running, scale: &Scale, round: usize) -> Called<Figure> {
    let name = format!("cold-{}-{round}", which.word());
    let path = made(servers.export(), &name, scale.cold_bytes)?;
    let (mut client, root) = servers.connect(which)?;
    let (file, _) = client.lookup(&root, name.as_bytes())?;
    let begun = Measurement::begin([servers.process(which)]);
    let report = client.load_each_once(&file, &load(scale), scale.cold_calls)?;
    let figure = Figure::of(begun, report.calls, report.calls);
    fs::remove_file(path)?;
    Ok(figure.timed(&report))
}

/// The same calls to the bare loop.
pub(super) fn run_bare(servers: &Servers, scale: &Scale, round: usize) -> Called<Figure> {
    let path = made(servers.export(), &format!("cold-bare-{round}"), scale.cold_bytes)?;
    let mut loops = BareLoop::start(servers, &path)?;
    let mut client = Client::connect(("127.0.0.1", loops.port))?;
    let begun = Measurement::begin([loops.child.0.id()]);
    let report = client.load_each_once(&[0; 32], &load(scale), scale.cold_calls)?;
    let figure = Figure::of(begun, report.calls, report.calls);
    drop(client);
    loops.child.0.wait()?;
    fs::remove_file(path)?;
    Ok(figure.timed(&report))
}

/// The bare loop's process. It ends with its connection.
struct BareLoop {
    child: Ending,
    port: u16,
}

impl BareLoop {
    fn start(servers: &Servers, path: &Path) -> io::Result<Self> {
        let mut child = servers.bare().arg(path).stdout(Stdio::piped()).spawn()?;
        let mut said = String::new();
        child.stdout.take().map_or(Ok(0), |out| BufReader::new(out).read_line(&mut said))?;
        match said.trim().parse() {
            Ok(port) => Ok(Self { child: Ending(child), port }),
            Err(_) => Err(io::Error::other(format!("the bare loop says no port: '{said}'"))),
        }
    }
}
