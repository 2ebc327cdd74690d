//! Servers as child processes on the server's side of a slow network.
//!
//! Owns: the start and the stop of each.
//! Does not own: the network, the disk, the calls to a server.
//! Invariants: a server is stopped when its value is dropped: it is asked first, and killed after [`STOP`]. The error
//! of a failed start names the missing part.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use afflux_simulator::EQUAL_PARTS_POLICY;

use crate::hardware::SlowNetwork;

/// Most time for a server to stop.
const STOP: Duration = Duration::from_secs(60);

/// A process that is stopped when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        while asked.elapsed() < STOP && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The settings of our server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knobs {
    pub(super) centisecs: u64,
    pub(super) memory_bytes: u64,
}

impl Knobs {
    /// As under a kernel: a tenth of the memory, independent of the devices' parts of the limit.
    pub(super) fn background_bytes(&self) -> u64 {
        self.memory_bytes / 10
    }
}

/// Our server.
pub(super) struct Running {
    _process: Process,
    /// The name of the exported directory.
    pub(super) export: String,
    /// The path of its control socket.
    pub(super) control: PathBuf,
}

impl Running {
    /// The port of NFS and MOUNT.
    pub(super) const PORT: u16 = 20_490;

    /// Starts `afflux serve`, with these knobs or none, and waits until it is ready.
    pub(super) fn afflux(
        network: &SlowNetwork,
        scratch: &Path,
        export: &Path,
        knobs: Option<Knobs>,
    ) -> Result<Self, String> {
        let program = Self::program()?;
        let mut command = network.on_server(&program.to_string_lossy());
        let control = scratch.join("control");
        command.arg("serve").arg(export).args(["--json", "--control"]).arg(&control);
        // The client is in another network namespace, where the server cannot find the owner of its socket.
        command.args(["--allow", "0.0.0.0/0", "--any-port", "--squash", "none"]);
        command.args(["--listen", &format!("{}:{}", SlowNetwork::SERVER_ADDRESS, Self::PORT)]);
        if let Some(knobs) = knobs {
            command.args(["--cache", &knobs.memory_bytes.to_string(), "--policy", EQUAL_PARTS_POLICY]);
            command.args(["--set", &format!("dirty_background_bytes={}", knobs.background_bytes())]);
            command.args(["--set", &format!("dirty_background_centisecs={}", knobs.centisecs)]);
        }
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"] {
            command.env(name, scratch);
        }
        let mut process = spawn(command.stdout(Stdio::piped()), &scratch.join("afflux.log"))?;
        let stdout = process.0.stdout.take().ok_or("the server has no output")?;
        let mut ready = String::new();
        let read = BufReader::new(stdout).read_line(&mut ready);
        if !matches!(read, Ok(1..)) {
            let said = std::fs::read_to_string(scratch.join("afflux.log")).unwrap_or_default();
            return Err(format!("the server did not start: {}", said.trim()));
        }
        let ready: serde_json::Value = serde_json::from_str(&ready).unwrap_or_default();
        let export = ready["serving"][0]["export"].as_str().ok_or("the server does not name its exports")?;
        Ok(Self { _process: process, export: export.to_owned(), control })
    }

    /// The command `afflux`: beside this program, or else in the search path.
    fn program() -> Result<PathBuf, String> {
        let beside = std::env::current_exe().ok().map(|own| own.with_file_name("afflux"));
        beside
            .filter(|path| path.is_file())
            .or_else(|| find("afflux"))
            .ok_or_else(|| "the command afflux is neither beside this program nor in the search path".to_owned())
    }
}

/// nfs-ganesha with its module for plain directories, and the port mapper that it registers with.
pub(super) struct Ganesha {
    // Stopped in this order.
    _server: Process,
    _port_mapper: Process,
}

impl Ganesha {
    pub(super) const NFS_PORT: u16 = 2049;
    pub(super) const MOUNT_PORT: u16 = 20_048;

    pub(super) fn start(network: &SlowNetwork, scratch: &Path, export: &Path) -> Result<Self, String> {
        for (program, package) in [("rpcbind", "rpcbind"), ("ganesha.nfsd", "nfs-ganesha and nfs-ganesha-vfs")] {
            if find(program).is_none() {
                return Err(format!("{program} is not installed (Debian: {package})"));
            }
        }
        let configuration = scratch.join("ganesha.conf");
        std::fs::write(&configuration, Self::configuration(export)).map_err(|error| error.to_string())?;
        for directory in ["/var/lib/nfs/ganesha", "/run/ganesha", "/run/rpcbind"] {
            std::fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
        }
        let mut port_mapper = network.on_server("rpcbind");
        let port_mapper = spawn(port_mapper.arg("-f").stdout(Stdio::null()), &scratch.join("rpcbind.log"))?;
        let mut server = network.on_server("ganesha.nfsd");
        server.args(["-F", "-f"]).arg(&configuration).arg("-L").arg(scratch.join("ganesha.log"));
        server.arg("-p").arg(scratch.join("ganesha.pid"));
        let server = spawn(server.stdout(Stdio::null()), &scratch.join("ganesha.out"))?;
        Ok(Self { _server: server, _port_mapper: port_mapper })
    }

    /// Version 3 of the protocol alone, on fixed ports, without locks and quotas.
    fn configuration(export: &Path) -> String {
        let (address, path) = (SlowNetwork::SERVER_ADDRESS, export.display());
        format!(
            "NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = {}; MNT_Port = {}; Enable_NLM = false; Enable_RQUOTA = false; \
             Bind_addr = {address}; mount_path_pseudo = false; }}\n\
             NFS_KRB5 {{ Active_krb5 = false; }}\n\
             EXPORT {{ Export_Id = 77; Path = {path}; Pseudo = /exp; Access_Type = RW; Squash = No_Root_Squash; \
             SecType = sys; Protocols = 3; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}\n\
             LOG {{ Default_Log_Level = EVENT; }}\n",
            Self::NFS_PORT,
            Self::MOUNT_PORT
        )
    }
}

fn spawn(command: &mut Command, log: &Path) -> Result<Process, String> {
    let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let child = command.stdin(Stdio::null()).stderr(file).spawn();
    child.map(Process).map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))
}

/// The path of a program, in the search path or in the system's directories.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|place| place.join(program)).find(|place| place.is_file())
}
