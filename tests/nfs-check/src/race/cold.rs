//! Random 4 KiB reads of data in no cache: through a server, and by io_uring with O_DIRECT on the host.
//!
//! Owns: the files, their absence from caches, fio's part.
//! Does not own: the load (`nfs-client`).
//! Invariants: each run has its own file, created on the host and dropped from its cache; each page is read once. The
//! host's loop keeps as many reads in flight and runs on the servers' CPU.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use afflux_nfs_client::{Kind, Load, Sending};
use rustix::fs::{Advice, fadvise};

use super::cases::{Called, MeasurementStart};
use super::servers::{Running, Servers, on_first_cpu};
use super::{Figure, Scale};

const BLOCK: u32 = 4096;
const WINDOW: usize = 64;
/// Index of the reads per second in fio's terse format, version 3.
const TERSE_READ_IOPS: usize = 7;

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

pub(super) fn run(servers: &mut Servers, which: Running, scale: &Scale, round: usize) -> Called<Figure> {
    let name = format!("cold-{}-{round}", which.name());
    let path = made(servers.export(), &name, scale.cold_bytes)?;
    let (mut client, root) = servers.connect(which)?;
    let (file, _) = client.lookup(&root, name.as_bytes())?;
    let load = Load {
        kind: Kind::Read(BLOCK),
        window: WINDOW,
        sending: Sending::Plain,
        file_bytes: scale.cold_bytes,
        sequential: false,
        duration: Duration::MAX,
        seed: 5,
    };
    let begun = MeasurementStart::now(servers, which)?;
    let report = client.load_each_once(&file, &load, scale.cold_calls)?;
    let figure = begun.end(servers, which, report.calls, report.calls)?;
    fs::remove_file(path)?;
    Ok(figure.timed(&report))
}

pub(super) fn run_on_host(servers: &Servers, scale: &Scale, round: usize) -> io::Result<Figure> {
    let path = made(servers.export(), &format!("cold-host-{round}"), scale.cold_bytes)?;
    let mut fio = on_first_cpu("fio");
    fio.args(["--name=cold", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=64"]);
    fio.args(["--output-format=terse", "--terse-version=3"]).arg(format!("--filename={}", path.display()));
    fio.arg(format!("--io_size={}", scale.cold_calls * u64::from(BLOCK)));
    let output = fio.output()?;
    fs::remove_file(path)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("3;"));
    let rate = line.and_then(|line| line.split(';').nth(TERSE_READ_IOPS)?.parse().ok());
    rate.map(Figure::of_rate).ok_or_else(|| io::Error::other(format!("fio says no rate: {text}")))
}
