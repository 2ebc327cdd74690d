//! Servers on this host. Cases that restart their guest need ours; cases that compare need nfs-ganesha, too.
//!
//! Owns: their processes, the words `start`, `ganesha`, `port` and `stop`.
//! Does not own: our program (`kit`), nfs-ganesha's configuration (`afflux_rig`).
//! Invariants: a server ends with the value, and with this process if that is killed. After a stop ours starts on the
//! same port.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use afflux_rig::{Ending, Ready, ganesha};
use afflux_scratch::within;
use anyhow::{Context, Result, ensure};

use super::kit::Kit;
use super::tied::tied;

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct HostServer<'a> {
    kit: &'a Kit,
    place: PathBuf,
    running: Option<Ready>,
    port: u16,
    ganesha: Option<(Ending, u16)>,
}

impl<'a> HostServer<'a> {
    pub(super) fn new(kit: &'a Kit, scratch: &Path) -> Self {
        Self { kit, place: scratch.join("host"), running: None, port: 0, ganesha: None }
    }

    /// Obeys a word; further flags of our server may follow `start`. Returns the line for the guest.
    pub(super) fn obey(&mut self, words: &str) -> String {
        let (word, flags) = words.split_once(' ').unwrap_or((words, ""));
        let obeyed = match word {
            "start" => self.start(flags),
            "ganesha" => self.start_ganesha(),
            "port" => Ok(self.port.to_string()),
            "stop" => self.stop(),
            _ => Err(anyhow::anyhow!("unknown word {word}")),
        };
        obeyed.map_or_else(|error| format!("error {error:#}"), |said| format!("ok {said}"))
    }

    fn start(&mut self, flags: &str) -> Result<String> {
        if self.running.is_none() {
            fs::create_dir_all(self.place.join("data")).context("a folder")?;
            let mut command = tied(self.kit.command());
            command.arg("serve").arg(self.place.join("data")).args(["--cache", "64MiB", "--any-port"]);
            command.arg("--listen").arg(format!("127.0.0.1:{}", self.port)).args(flags.split_whitespace());
            command.arg("--state").arg(self.place.join("state")).env("XDG_STATE_HOME", &self.place);
            let server = Ready::start(&mut command, &self.place)?;
            self.port = server.port;
            self.running = Some(server);
        }
        Ok(self.port.to_string())
    }

    /// Starts nfs-ganesha for version 4, which needs no port mapper. It keeps its port as long as it runs.
    fn start_ganesha(&mut self) -> Result<String> {
        let home = self.place.join("ganesha");
        let port = match &self.ganesha {
            Some((_, port)) => return Ok(port.to_string()),
            None => TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("a free port")?.port(),
        };
        // Its package makes the first of these, a service the second.
        for folder in ["/var/lib/nfs/ganesha".as_ref(), "/run/ganesha".as_ref(), home.join("exp").as_path()] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let mut command = tied(ganesha::PROGRAM);
        let (export, ports) = (home.join("exp"), [port, 0]);
        ganesha::serve(&mut command, &home, &export, Ipv4Addr::LOCALHOST, ports, "4", ganesha::VERSION_4)?;
        let log = File::create(home.join("error")).context("a log")?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let running = Ending(child.context(ganesha::PROGRAM)?);
        let answers = within(PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        ensure!(answers, "nfs-ganesha does not answer");
        self.ganesha = Some((running, port));
        Ok(port.to_string())
    }

    fn stop(&mut self) -> Result<String> {
        let running = self.running.take().context("it does not run")?;
        Ok(running.stop()?.to_string())
    }
}
