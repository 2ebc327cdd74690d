//! The participants: their programs, each behind its own relay.
//!
//! Owns: the processes and their mounts, their beginning and end.
//! Does not own: the store, the loads.
//! Invariants: each start has a new relay, which counts the requests of one part of a run. A participant's drop ends
//! its programs.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use afflux_gateway::{Asked, Gateway, KEY, Relay, SECRET, Treatment};
use afflux_nfs_client::Client;
use afflux_rig::{Ending, Mounted, Ready, choice};
use afflux_scratch::within;
use rustix::process::{Pid, Signal, kill_process};

use super::options::Options;
use super::session::Session;
use crate::failure::{Failure, call, host};

const CACHE: &str = "1GiB";
const PATIENCE: Duration = Duration::from_secs(60);

choice! {
    /// The participants, in the order of their first turns.
    pub(super) Who { Afflux = "afflux", Raw = "raw", Zerofs = "zerofs", S3fs = "s3fs", Rclone = "rclone" }
}

impl Who {
    pub(super) fn is_peer(self) -> bool {
        !matches!(self, Self::Afflux | Self::Raw)
    }

    /// Its program is installed, and the user wants it.
    pub(super) fn is_there(self, only: &[String]) -> bool {
        let is_installed = match self {
            Self::Afflux | Self::Raw => true,
            Self::Zerofs | Self::S3fs | Self::Rclone => program(self.word()).is_some(),
        };
        is_installed && (only.is_empty() || only.iter().any(|name| name == self.word()))
    }
}

/// A running program.
enum Running {
    Own(Ready),
    Other { child: Ending, address: SocketAddr },
    Mount(Mounted),
}

impl Running {
    /// The address and the export of a server.
    fn address_and_export(&self) -> Option<(SocketAddr, &str)> {
        match self {
            Self::Own(ready) => Some((ready.address(), &ready.export)),
            Self::Other { address, .. } => Some((*address, "/")),
            Self::Mount(_) => None,
        }
    }
}

pub(super) struct Participant<'a> {
    who: Who,
    options: &'a Options,
    ceph: &'a Gateway,
    bucket: String,
    /// The program, which ends before its relay.
    running: Option<(Running, Relay)>,
}

impl<'a> Participant<'a> {
    pub(super) fn new(who: Who, options: &'a Options, ceph: &'a Gateway, bucket: String) -> Self {
        Self { who, options, ceph, bucket, running: None }
    }

    pub(super) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The directory of all participants.
    pub(super) fn directory(&self) -> &Path {
        &self.options.directory
    }

    /// A new relay to the store.
    pub(super) fn relay(&self) -> Result<Relay, Failure> {
        let Options { delay, bandwidth_bytes_per_s, .. } = *self.options;
        let treatment = Treatment { delay, bandwidth_bytes_per_s, ..Treatment::default() };
        Relay::treating(self.ceph.address(), treatment).map_err(host("a relay"))
    }

    /// Ends a running program and starts a new one, whose memory is empty.
    pub(super) fn start(&mut self, arguments: &[&str]) -> Result<(), Failure> {
        self.stop();
        let relay = self.relay()?;
        let running = match self.who {
            Who::Afflux => self.serve(&relay, arguments)?,
            Who::Zerofs => self.serve_zerofs(&relay)?,
            _ => self.mount(&relay)?,
        };
        self.running = Some((running, relay));
        Ok(())
    }

    /// Requests since the start.
    pub(super) fn asked(&self) -> Asked {
        self.running.as_ref().map_or_else(Asked::default, |(_, relay)| relay.asked())
    }

    /// A new connection of a client.
    pub(super) fn session(&self) -> Result<Session, Failure> {
        match self.running()? {
            Running::Mount(mounted) => Ok(Session::Mounted { point: mounted.point().to_owned() }),
            server => server.address_and_export().map_or_else(
                || Err(Failure::Server(format!("{} has no address", self.who.word()))),
                |(address, path)| connect(address, path).map_err(call("a connection to the server")),
            ),
        }
    }

    /// Calls `inside` with a directory in which programs of this machine see the files.
    pub(super) fn with_mount<T>(&self, inside: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, Failure> {
        let running = self.running()?;
        let (point, log) = (self.options.directory.join("bridge"), self.options.directory.join("bridge.log"));
        let mounted = running.address_and_export().map(|(address, path)| {
            let mut command = Command::new(&self.options.bridge);
            command.arg(address.to_string()).arg(path).arg(&point).arg(address.to_string());
            Mounted::start(&mut command, &point, &log)
        });
        let mounted = mounted.transpose().map_err(host("the bridge"))?;
        match (&mounted, running) {
            (Some(mounted), _) | (None, Running::Mount(mounted)) => {
                inside(mounted.point()).map_err(host("a program on a mount"))
            }
            _ => Err(Failure::Server(format!("{} has no mount", self.who.word()))),
        }
    }

    fn running(&self) -> Result<&Running, Failure> {
        let running = self.running.as_ref().map(|(running, _)| running);
        running.ok_or_else(|| Failure::Server(format!("{} does not run", self.who.word())))
    }

    /// Kills the server, as a power failure of its process would.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    /// Ends the program in its own way.
    fn stop(&mut self) {
        match self.running.take() {
            Some((Running::Own(ready), _relay)) => drop(ready.stop()),
            Some((Running::Other { mut child, .. }, _relay)) => {
                let _ = kill_process(Pid::from_child(&child.0), Signal::TERM);
                let _ = child.0.wait();
            }
            _ => {}
        }
    }

    fn with_keys(program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET).stdin(Stdio::null());
        command
    }

    fn serve(&self, relay: &Relay, arguments: &[&str]) -> Result<Running, Failure> {
        // Prices of the store are kept over starts and rounds, as a server keeps them.
        let home = self.options.directory.join("afflux");
        let mut command = Self::with_keys(&self.options.afflux);
        command.arg("serve").arg(format!("s3://{}/home", self.bucket)).args(["--endpoint", &relay.endpoint()]);
        command.args(["--listen", "127.0.0.1:0", "--cache", CACHE]).args(arguments);
        if !arguments.contains(&"--state") {
            command.arg("--state").arg(home.join("state"));
        }
        // As over TLS. The plain requests and rclone sign no body either; s3fs always does.
        command.env("AWS_UNSIGNED_PAYLOAD", "true");
        Ok(Running::Own(Ready::start(&mut command, &home).map_err(host("afflux"))?))
    }

    /// ZeroFS encrypts and compresses all bytes, which it cannot leave.
    fn serve_zerofs(&self, relay: &Relay) -> Result<Running, Failure> {
        let home = self.options.directory.join("zerofs");
        fs::create_dir_all(&home).map_err(host("zerofs"))?;
        let address = free_address().map_err(host("a port"))?;
        let settings = [
            format!("[cache]\ndir = \"{}/cache\"\ndisk_size_gb = 4.0\nmemory_size_gb = 1.0", home.display()),
            format!("[storage]\nurl = \"s3://{}/home\"\nencryption_password = \"a password\"", self.bucket),
            format!("[servers.nfs]\naddresses = [\"{address}\"]"),
            format!("[aws]\naccess_key_id = \"{KEY}\"\nsecret_access_key = \"{SECRET}\""),
            format!("endpoint = \"{}\"\nallow_http = \"true\"\nunsigned_payload = \"true\"", relay.endpoint()),
        ];
        fs::write(home.join("settings.toml"), settings.join("\n")).map_err(host("zerofs"))?;
        let log = fs::File::create(home.join("log")).map_err(host("zerofs"))?;
        let mut command = Self::with_keys("zerofs");
        command.args(["run", "-c"]).arg(home.join("settings.toml")).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(host("zerofs"))?;
        let running = Running::Other { child: Ending(child), address };
        if within(PATIENCE, || connect(address, "/").is_ok()) {
            return Ok(running);
        }
        Err(Failure::Server(format!("zerofs does not start; its log is in {}", home.display())))
    }

    fn mount(&self, relay: &Relay) -> Result<Running, Failure> {
        let (name, point) = (self.who.word(), self.options.directory.join(self.who.word()));
        let mut command = Self::with_keys(name);
        if self.who == Who::S3fs {
            let url = format!("url={}", relay.endpoint());
            command.arg(&self.bucket).arg(&point).args(["-f", "-o", &url, "-o", "use_path_request_style"]);
            // Its variables are the usual ones with a prefix.
            command.env("AWSACCESSKEYID", KEY).env("AWSSECRETACCESSKEY", SECRET);
        } else {
            command.args(["mount", &format!(":s3:{}", self.bucket)]).arg(&point).args(["--vfs-cache-mode", "off"]);
            // Its S3 library takes no certificates by this variable, and there is no TLS.
            command.env_remove("AWS_CA_BUNDLE");
            command.env("RCLONE_S3_PROVIDER", "Ceph").env("RCLONE_S3_ENDPOINT", relay.endpoint());
            command.env("RCLONE_S3_ENV_AUTH", "true").env("RCLONE_CONFIG", self.options.directory.join("rclone.conf"));
        }
        let log = self.options.directory.join(format!("{name}.log"));
        Ok(Running::Mount(Mounted::start(&mut command, &point, &log).map_err(host(name))?))
    }
}

impl Drop for Participant<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where an installed program is.
fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/local/bin"].map(Path::new).into_iter();
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn connect(address: SocketAddr, path: &str) -> Result<Session, afflux_nfs_client::Error> {
    let root = Client::connect(address)?.mount(path)?;
    let mut client = Client::connect(address)?;
    client.set_timeout(Some(PATIENCE))?;
    Ok(Session::Nfs { client, root })
}
