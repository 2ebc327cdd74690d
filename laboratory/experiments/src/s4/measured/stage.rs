//! The surroundings of a measurement: a slow disk and a slow network by the kernel, and servers between them.
//!
//! Owns: setting them up; a server's options; the client's side.
//! Does not own: the limiters (`crate::hardware`), a server's process and configuration (`afflux_rig`), the copy
//! (`client`).
//! Invariants: every server of a run has the same stage and directory. The error of a failed start names the missing
//! part.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use afflux_rig::{Ending, Ready, ganesha};

use super::client::ServerAddresses;
use crate::experiment::LabError;
use crate::hardware::{DiskRates, SlowDisk, SlowNetwork};
use crate::s4::plan::Plan;

/// The port of NFS and MOUNT of our server.
const PORT: u16 = 20_490;
/// Programs of nfs-ganesha, and the packages that have them.
const GANESHA: [(&str, &str); 2] =
    [(ganesha::PORT_MAPPER, "rpcbind"), (ganesha::PROGRAM, "nfs-ganesha and nfs-ganesha-vfs")];

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
pub(super) struct Stage<'a> {
    plan: &'a Plan,
    scratch: &'a Path,
    network: SlowNetwork,
    _disk: SlowDisk,
    directory: PathBuf,
}

/// A server that runs until it is stopped or dropped.
pub(super) struct Server {
    pub(super) at: ServerAddresses,
    /// The path of the control socket, for reports; ganesha has none.
    pub(super) control: Option<PathBuf>,
    ours: Option<Ready>,
    /// Ganesha, and its port mapper.
    _ganesha: Vec<Ending>,
}

impl Server {
    /// Has our server end by itself. The next server would find the state of one that was killed.
    pub(super) fn stop(self) -> Result<(), LabError> {
        self.ours.map_or(Ok(()), |server| server.stop().map(drop).map_err(LabError::failed))
    }
}

impl<'a> Stage<'a> {
    /// Sets up a stage in `scratch`.
    pub(super) fn new(plan: &'a Plan, file_bytes: u64, scratch: &'a Path) -> Result<Self, LabError> {
        SlowDisk::probe().map_err(LabError::failed)?;
        let network = SlowNetwork::new(plan.link.bits_per_second).map_err(LabError::failed)?;
        // Space for one file at a time, the journal, and the file system's own data.
        let bytes = file_bytes / 4 * 5 + (512 << 20);
        let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(plan.disk_bytes_per_s) };
        let disk = SlowDisk::new(scratch, bytes, rates).map_err(LabError::failed)?;
        let directory = disk.path().join("exp");
        std::fs::create_dir(&directory)
            .map_err(|error| LabError::failed(format!("{}: {error}", directory.display())))?;
        Ok(Self { plan, scratch, network, _disk: disk, directory })
    }

    /// Starts a server.
    pub(super) fn start(&self, subject: Subject) -> Result<Server, String> {
        let started = if subject == Subject::Ganesha { self.ganesha() } else { self.afflux(subject.centisecs()) };
        started.map_err(|error| error.to_string())
    }

    /// Runs `work` on the client's side.
    pub(super) fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        self.network.as_client(work).map_err(LabError::failed)
    }

    /// Our server, with these centiseconds and a kernel's other thresholds, or with its defaults.
    fn afflux(&self, centisecs: Option<u64>) -> io::Result<Server> {
        let mut command = self.network.on_server(&program()?.to_string_lossy());
        // The client is in another network namespace, where the server cannot find the owner of its socket.
        command.arg("serve").arg(&self.directory).args(["--allow", "0.0.0.0/0", "--any-port", "--squash", "none"]);
        command.args(["--listen", &format!("{}:{PORT}", SlowNetwork::SERVER_ADDRESS)]);
        if let Some(centisecs) = centisecs {
            let memory_bytes = self.plan.memory_bytes;
            // The budget is longer than the whole copy, so that the thresholds alone start the flusher.
            command.args(["--cache", &memory_bytes.to_string(), "--set", "budget_ms=60000"]);
            // As under a kernel: a tenth of the memory.
            command.args(["--set", &format!("dirty_background_bytes={}", memory_bytes / 10)]);
            command.args(["--set", &format!("dirty_background_centisecs={centisecs}")]);
        }
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"] {
            command.env(name, self.scratch);
        }
        let ready = Ready::start(&mut command, self.scratch)?;
        let at = SocketAddr::from((SlowNetwork::SERVER_ADDRESS, ready.port));
        let at = ServerAddresses { nfs: at, mount: at, export: ready.export.clone() };
        Ok(Server { at, control: Some(self.scratch.join("control.sock")), ours: Some(ready), _ganesha: Vec::new() })
    }

    /// nfs-ganesha with its module for plain directories: version 3 of the protocol alone.
    fn ganesha(&self) -> io::Result<Server> {
        if let Some((program, package)) = GANESHA.into_iter().find(|(program, _)| find(program).is_none()) {
            return Err(io::Error::other(format!("{program} is not installed (Debian: {package})")));
        }
        for directory in ["/var/lib/nfs/ganesha", "/run/ganesha", "/run/rpcbind"] {
            std::fs::create_dir_all(directory)?;
        }
        let port_mapper = ganesha::port_mapper(&mut self.network.on_server(ganesha::PORT_MAPPER), self.scratch)?;
        let mut command = self.network.on_server(ganesha::PROGRAM);
        let address = SlowNetwork::SERVER_ADDRESS;
        ganesha::serve(&mut command, self.scratch, &self.directory, address, ganesha::PORTS, "3", "")?;
        let log = std::fs::File::create(self.scratch.join("ganesha.out"))?;
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let [nfs, mount] = ganesha::PORTS.map(|port| SocketAddr::from((address, port)));
        let at = ServerAddresses { nfs, mount, export: self.directory.to_string_lossy().into_owned() };
        Ok(Server { at, control: None, ours: None, _ganesha: vec![Ending(server), port_mapper] })
    }
}

/// The command `afflux`: beside this program, or else in the search path.
fn program() -> io::Result<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("afflux"));
    let found = beside.filter(|path| path.is_file()).or_else(|| find("afflux"));
    found.ok_or_else(|| io::Error::other("the command afflux is neither beside this program nor in the search path"))
}

/// The path of a program, in the search path or in the system's directories.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|place| place.join(program)).find(|place| place.is_file())
}
