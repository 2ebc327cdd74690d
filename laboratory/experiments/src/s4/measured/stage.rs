//! The surroundings of a measurement: a slow disk and a slow network, by the kernel or by this process.
//!
//! Owns: the choice between the two, with its reason; starting a server; the client's side.
//! Does not own: the limiters (`crate::hardware`), the servers (`servers`, `in_process`), the copy (`client`).
//! Invariants: every server of a run has the same stage and directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::client::ServerAddresses;
use super::in_process::{InProcessServer, Limits, room_for};
use super::reports::ReportSource;
use super::servers::{Ganesha, Knobs, Running};
use crate::experiment::LabError;
use crate::hardware::{DiskRates, SlowDisk, SlowNetwork};
use crate::s4::plan::{Limiters, Plan};

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
pub(super) enum Stage {
    /// Namespaces with `tbf`, and a throttled loop device. Servers are processes.
    Kernel { network: SlowNetwork, _disk: Box<SlowDisk>, directory: PathBuf },
    /// A relay and a device that delay. The server is in this process.
    Process { directory: PathBuf },
}

/// A server that runs until it is dropped.
pub(super) enum Server {
    Process(Running),
    Ganesha { _kept: Ganesha },
    Here(Box<InProcessServer>),
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Failed(error.to_string())
}

impl Stage {
    /// Sets up a stage in `scratch`; adds a note for each part that differs from the usual.
    pub(super) fn new(plan: &Plan, file_bytes: u64, scratch: &Path, notes: &mut Vec<String>) -> Result<Self, LabError> {
        let why = match plan.limiters {
            Limiters::Process => "as asked for".to_owned(),
            Limiters::Auto if !geteuid().is_root() => "the kernel's need root".to_owned(),
            Limiters::Kernel => {
                let hint = if geteuid().is_root() { "" } else { "the kernel's limiters need root: " };
                return Self::kernel(plan, file_bytes, scratch).map_err(|error| failed(format!("{hint}{error}")));
            }
            Limiters::Auto => match Self::kernel(plan, file_bytes, scratch) {
                Ok(stage) => return Ok(stage),
                Err(error) => format!("the kernel's cannot be had: {error}"),
            },
        };
        let directory = scratch.join("exp");
        room_for(file_bytes, &directory).map_err(failed)?;
        notes.push(format!(
            "Limiters of this process ({why}): a relay of TCP connections, and writes that wait before they go to the \
             disk; our server runs in this process. {} is not measured: its writes cannot be made to wait without root. \
             Nor is '{}', whose cache is the command's choice.",
            Subject::Ganesha.name(),
            Subject::Plain.name()
        ));
        Ok(Self::Process { directory })
    }

    fn kernel(plan: &Plan, file_bytes: u64, scratch: &Path) -> Result<Self, LabError> {
        let network = SlowNetwork::new(plan.link.bits_per_second).map_err(failed)?;
        // Room for one file at a time, the journal, and the file system's own data.
        let bytes = file_bytes / 4 * 5 + (512 << 20);
        let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(plan.disk_bytes_per_s) };
        let disk = SlowDisk::new(scratch, bytes, rates).map_err(failed)?;
        let directory = disk.path().join("exp");
        std::fs::create_dir(&directory).map_err(|error| failed(format!("{}: {error}", directory.display())))?;
        Ok(Self::Kernel { network, _disk: Box::new(disk), directory })
    }

    /// The name of the limiters in rows.
    pub(super) fn limiters(&self) -> &'static str {
        match self {
            Self::Kernel { .. } => "kernel",
            Self::Process { .. } => "process",
        }
    }

    /// Whether this stage can run the server.
    pub(super) fn has(&self, subject: Subject) -> bool {
        matches!((self, subject), (Self::Kernel { .. }, _) | (_, Subject::Knob(_)))
    }

    /// Starts a server. An error names the missing part.
    pub(super) fn start(&self, subject: Subject, plan: &Plan, scratch: &Path) -> Result<Server, String> {
        let knobs = |centisecs| Knobs { centisecs, memory_bytes: plan.memory_bytes };
        match (self, subject) {
            (Self::Kernel { network, directory, .. }, Subject::Ganesha) => {
                Ganesha::start(network, scratch, directory).map(|server| Server::Ganesha { _kept: server })
            }
            (Self::Kernel { network, directory, .. }, _) => {
                Running::afflux(network, scratch, directory, subject.centisecs().map(knobs)).map(Server::Process)
            }
            (Self::Process { directory }, Subject::Knob(centisecs)) => {
                let limits =
                    Limits { link_bits_per_s: plan.link.bits_per_second, disk_bytes_per_s: plan.disk_bytes_per_s };
                InProcessServer::start(directory, &knobs(centisecs), limits).map(|here| Server::Here(Box::new(here)))
            }
            (Self::Process { .. }, Subject::Ganesha | Subject::Plain) => {
                Err("it cannot be slowed down without root".to_owned())
            }
        }
    }

    /// The addresses of a server.
    pub(super) fn at(&self, server: &Server) -> ServerAddresses {
        let directory = match self {
            Self::Kernel { directory, .. } | Self::Process { directory } => directory,
        };
        let there = |port: u16| SocketAddr::from((SlowNetwork::SERVER_ADDRESS, port));
        match server {
            Server::Process(running) => ServerAddresses {
                nfs: there(Running::PORT),
                mount: there(Running::PORT),
                export: running.export.clone(),
            },
            Server::Ganesha { .. } => ServerAddresses {
                nfs: there(Ganesha::NFS_PORT),
                mount: there(Ganesha::MOUNT_PORT),
                export: directory.to_string_lossy().into_owned(),
            },
            Server::Here(here) => {
                ServerAddresses { nfs: here.address(), mount: here.address(), export: here.export().to_owned() }
            }
        }
    }

    /// Runs `work` on the client's side.
    pub(super) fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        match self {
            Self::Kernel { network, .. } => network.as_client(work).map_err(failed),
            Self::Process { .. } => Ok(work()),
        }
    }
}

impl Server {
    /// The source of the server's reports.
    pub(super) fn report_source(&self) -> ReportSource {
        match self {
            Self::Process(running) => ReportSource::Socket(running.control.clone()),
            Self::Ganesha { .. } => ReportSource::Nobody,
            Self::Here(here) => ReportSource::Engine(here.engine().clone()),
        }
    }
}
