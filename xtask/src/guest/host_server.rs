//! A server on this host for cases that restart their guest.
//!
//! Owns: its process, the words `start`, `port` and `stop`.
//! Does not own: the program (`kit`).
//! Invariants: the server ends with the value, and with this process if that is killed. After a stop it starts on the
//! same port.

use std::fs;
use std::path::{Path, PathBuf};

use afflux_rig::Ready;
use anyhow::{Context, Result};

use super::kit::Kit;
use super::tied::tied;

pub(super) struct HostServer<'a> {
    kit: &'a Kit,
    place: PathBuf,
    running: Option<Ready>,
    port: u16,
}

impl<'a> HostServer<'a> {
    pub(super) fn new(kit: &'a Kit, scratch: &Path) -> Self {
        Self { kit, place: scratch.join("host"), running: None, port: 0 }
    }

    /// Obeys a word. Returns the line for the guest.
    pub(super) fn obey(&mut self, word: &str) -> String {
        let obeyed = match word {
            "start" => self.start(),
            "port" => Ok(self.port.to_string()),
            "stop" => self.stop(),
            _ => Err(anyhow::anyhow!("unknown word {word}")),
        };
        obeyed.map_or_else(|error| format!("error {error:#}"), |said| format!("ok {said}"))
    }

    fn start(&mut self) -> Result<String> {
        if self.running.is_none() {
            fs::create_dir_all(self.place.join("data")).context("a folder")?;
            let mut command = tied(self.kit.command());
            command.arg("serve").arg(self.place.join("data")).args(["--cache", "64MiB", "--any-port"]);
            command.arg("--listen").arg(format!("127.0.0.1:{}", self.port));
            let server = Ready::start(command.arg("--state").arg(self.place.join("state")), &self.place)?;
            self.port = server.port;
            self.running = Some(server);
        }
        Ok(self.port.to_string())
    }

    fn stop(&mut self) -> Result<String> {
        let running = self.running.take().context("it does not run")?;
        Ok(running.stop()?.to_string())
    }
}
