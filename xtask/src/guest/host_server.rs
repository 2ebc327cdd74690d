//! A server on this host for cases that restart their guest.
//!
//! Owns: its process, the words `start`, `port`, `kill` and `stop`.
//! Does not own: the program (`kit`).
//! Invariants: the server ends with the value, and with this process if that is killed. After a kill it starts on the
//! same port.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::kit::Kit;
use super::tied::tied;

pub(super) struct HostServer<'a> {
    kit: &'a Kit,
    place: PathBuf,
    child: Option<Child>,
    port: u64,
}

impl<'a> HostServer<'a> {
    pub(super) fn new(kit: &'a Kit, scratch: &Path) -> Self {
        Self { kit, place: scratch.join("host"), child: None, port: 0 }
    }

    /// Obeys a word. Returns the line for the guest.
    pub(super) fn obey(&mut self, word: &str) -> String {
        let obeyed = match word {
            "start" => self.start(),
            "port" => Ok(self.port.to_string()),
            "kill" => self.end("-KILL"),
            "stop" => self.end("-TERM"),
            _ => Err(anyhow::anyhow!("unknown word {word}")),
        };
        obeyed.map_or_else(|error| format!("error {error:#}"), |said| format!("ok {said}"))
    }

    fn start(&mut self) -> Result<String> {
        if self.child.is_some() {
            return Ok(self.port.to_string());
        }
        fs::create_dir_all(self.place.join("data")).context("a folder")?;
        let mut command = tied(self.kit.command());
        command.arg("serve").arg(self.place.join("data")).args(["--json", "--cache", "64MiB", "--any-port"]);
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port));
        command.arg("--control").arg(self.place.join("control")).arg("--state").arg(self.place.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(self.place.join("log"))?);
        let mut child = command.spawn().context("afflux serve")?;
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line);
        self.child = Some(child);
        read.context("its output")?;
        let said: serde_json::Value = serde_json::from_str(&line).context("the server's first line")?;
        self.port = said["port"].as_u64().context("no port")?;
        Ok(self.port.to_string())
    }

    fn end(&mut self, signal: &str) -> Result<String> {
        let Some(mut child) = self.child.take() else { bail!("it does not run") };
        let status = Command::new("kill").arg(signal).arg(child.id().to_string()).status().context("kill")?;
        let ended = child.wait().context("its end")?;
        anyhow::ensure!(status.success(), "kill fails");
        Ok(ended.to_string())
    }
}

impl Drop for HostServer<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
