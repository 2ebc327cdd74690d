//! The killed servers as processes of this machine.
//!
//! Owns: their start, their kill, the look at their disk.
//! Does not own: the network namespace; the configuration of ganesha (`ganesha`).
//! Invariants: a successor is started as soon as its predecessor is gone. A server ends with its value, and its cache
//! in memory goes with it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use afflux_rig::{Ending, choice, ganesha};

use super::killed::{Killed, Server};
use crate::failure::{Failure, host};

const AFFLUX: u16 = 3049;
const CACHE: &str = "256MiB";

choice! {
    /// The killed servers, in the order of their first turns.
    pub(super) Which {
        /// Its cache outlives it.
        AffluxArena = "afflux --arena",
        Ganesha = "ganesha",
        Afflux = "afflux",
        /// Without a grace period.
        GaneshaNoGrace = "ganesha, Graceless",
    }
}

impl Which {
    fn is_ganesha(self) -> bool {
        matches!(self, Self::Ganesha | Self::GaneshaNoGrace)
    }
}

pub(super) struct Process {
    which: Which,
    command: Command,
    running: Ending,
    export: PathBuf,
    arena: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.arena);
    }
}

impl Process {
    pub(super) fn start(which: Which, program: &Path, directory: &Path, memory: &Path) -> Result<Self, Failure> {
        let home = directory.join(which.word().replace([' ', ','], ""));
        let (export, arena) = (home.join("exp"), memory.join("arena"));
        fs::create_dir_all(&export).map_err(host(export.display().to_string()))?;
        let mut command = Command::new(if which.is_ganesha() { Path::new(ganesha::PROGRAM) } else { program });
        if which.is_ganesha() {
            let more = if which == Which::GaneshaNoGrace { "NFSv4 { Graceless = true; }\n" } else { "" };
            ganesha::serve(&mut command, &home, &export, Ipv4Addr::LOCALHOST, ganesha::PORTS, "3", more)
                .map_err(host("ganesha.conf"))?;
        } else {
            afflux(&mut command, &home, &export);
        }
        if which == Which::AffluxArena {
            command.arg("--arena").arg(&arena);
        }
        let log = fs::OpenOptions::new().create(true).append(true).open(home.join("log")).map_err(host("a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let running = Ending(command.spawn().map_err(host(which.word()))?);
        Ok(Self { which, command, running, export, arena })
    }

    pub(super) fn server(&self) -> Server {
        let ports = if self.which.is_ganesha() { ganesha::PORTS } else { [AFFLUX; 2] };
        let [nfs, mount] = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let path = if self.which.is_ganesha() { self.export.display().to_string() } else { "/".to_owned() };
        Server { nfs, mount, path }
    }

    /// Kills the server, looks at its files, and starts its successor.
    pub(super) fn kill(&mut self, names: &[String]) -> Result<Killed, Failure> {
        let at = Instant::now();
        self.running.0.kill().map_err(host("a kill"))?;
        self.running.0.wait().map_err(host("the end of a killed server"))?;
        let ended = Instant::now();
        let on_disk: std::io::Result<Vec<_>> = names.iter().map(|name| fs::read(self.export.join(name))).collect();
        let on_disk = Some(on_disk.map_err(host("a look at the disk"))?);
        let aside = ended.elapsed();
        self.running = Ending(self.command.spawn().map_err(host(self.which.word()))?);
        Ok(Killed { at, aside, on_disk })
    }
}

fn afflux(command: &mut Command, home: &Path, export: &Path) {
    command.arg("serve").arg(export).args(["--listen", &format!("127.0.0.1:{AFFLUX}"), "--cache", CACHE]);
    command.arg("--control").arg(home.join("control.sock")).arg("--state").arg(home.join("state"));
    command.env("XDG_STATE_HOME", home);
}
