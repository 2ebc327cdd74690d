//! The surroundings of a measurement: a slow disk and a slow network by the kernel.
//!
//! Owns: setting them up; starting a server; the client's side.
//! Does not own: the limiters (`crate::hardware`), the servers (`servers`), the copy (`client`).
//! Invariants: every server of a run has the same stage and directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::client::ServerAddresses;
use super::servers::{Ganesha, Knobs, Running};
use crate::experiment::LabError;
use crate::hardware::{DiskRates, SlowDisk, SlowNetwork};
use crate::s4::plan::Plan;

/// A server to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    /// nfs-ganesha.
    Ganesha,
    /// Our server with the simulated one's thresholds, and the knob in centiseconds.
    Knob(u64),
    /// Our server with its defaults.
    Plain,
}

impl Subject {
    /// The name in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ganesha => "nfs-ganesha",
            Self::Knob(_) => "afflux",
            Self::Plain => "afflux, no settings",
        }
    }

    pub(super) fn centisecs(self) -> Option<u64> {
        match self {
            Self::Knob(centisecs) => Some(centisecs),
            Self::Ganesha | Self::Plain => None,
        }
    }
}

/// A slow disk with a directory on it, and a slow network to servers of that directory.
pub(super) struct Stage {
    network: SlowNetwork,
    _disk: SlowDisk,
    directory: PathBuf,
}

/// A server that runs until it is dropped.
pub(super) enum Server {
    Ours(Running),
    Ganesha { _kept: Ganesha },
}

impl Stage {
    /// Sets up a stage in `scratch`.
    pub(super) fn new(plan: &Plan, file_bytes: u64, scratch: &Path) -> Result<Self, LabError> {
        SlowDisk::probe().map_err(LabError::failed)?;
        let network = SlowNetwork::new(plan.link.bits_per_second).map_err(LabError::failed)?;
        // Room for one file at a time, the journal, and the file system's own data.
        let bytes = file_bytes / 4 * 5 + (512 << 20);
        let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(plan.disk_bytes_per_s) };
        let disk = SlowDisk::new(scratch, bytes, rates).map_err(LabError::failed)?;
        let directory = disk.path().join("exp");
        std::fs::create_dir(&directory)
            .map_err(|error| LabError::failed(format!("{}: {error}", directory.display())))?;
        Ok(Self { network, _disk: disk, directory })
    }

    /// Starts a server. An error names the missing part.
    pub(super) fn start(&self, subject: Subject, plan: &Plan, scratch: &Path) -> Result<Server, String> {
        let Self { network, directory, .. } = self;
        let knobs = |centisecs| Knobs { centisecs, memory_bytes: plan.memory_bytes };
        match subject {
            Subject::Ganesha => {
                Ganesha::start(network, scratch, directory).map(|server| Server::Ganesha { _kept: server })
            }
            _ => Running::afflux(network, scratch, directory, subject.centisecs().map(knobs)).map(Server::Ours),
        }
    }

    /// The addresses of a server.
    pub(super) fn at(&self, server: &Server) -> ServerAddresses {
        let there = |port: u16| SocketAddr::from((SlowNetwork::SERVER_ADDRESS, port));
        let (nfs, mount, export) = match server {
            Server::Ours(running) => (Running::PORT, Running::PORT, running.export.clone()),
            Server::Ganesha { .. } => {
                (Ganesha::NFS_PORT, Ganesha::MOUNT_PORT, self.directory.to_string_lossy().into_owned())
            }
        };
        ServerAddresses { nfs: there(nfs), mount: there(mount), export }
    }

    /// Runs `work` on the client's side.
    pub(super) fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        self.network.as_client(work).map_err(LabError::failed)
    }
}

impl Server {
    /// The path of the control socket, for reports; ganesha has none.
    pub(super) fn control(&self) -> Option<&Path> {
        match self {
            Self::Ours(running) => Some(&running.control),
            Self::Ganesha { .. } => None,
        }
    }
}
