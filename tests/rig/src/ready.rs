//! A server of ours that has said where it listens.
//!
//! Owns: its process, its first line, its end.
//! Does not own: the command's other arguments.
//! Invariants: the process ends with the value.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};

/// A running server.
#[derive(Debug)]
pub struct Ready {
    child: Child,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Its first export.
    pub export: String,
}

impl Ready {
    /// Starts `afflux serve` with its log and its control socket in `home`, and waits for its first line.
    pub fn start(command: &mut Command, home: &Path) -> io::Result<Self> {
        fs::create_dir_all(home)?;
        let path = home.join("log");
        let log = File::options().create(true).append(true).open(&path)?;
        command.arg("--json").arg("--control").arg(home.join("control.sock"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut line = String::new();
        let said = child.stdout.take().map_or(Ok(0), |stdout| BufReader::new(stdout).read_line(&mut line));
        let told = field(&line, "\"port\":").and_then(|port| port.parse().ok()).zip(field(&line, "\"export\":\""));
        let (port, export) = told.map_or((0, String::new()), |(port, export)| (port, export.to_owned()));
        let ready = Self { child, port, export };
        said?;
        match ready.port {
            0 => {
                let log = fs::read_to_string(&path).unwrap_or_default();
                Err(io::Error::other(format!("afflux does not start: {line}{log}")))
            }
            _ => Ok(ready),
        }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its end, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Has it end in its own way.
    pub fn stop(mut self) -> io::Result<ExitStatus> {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text after a key in a line of JSON, up to the end of the value.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.split_once(key)?.1;
    Some(rest.split(['"', ',', '}']).next()?.trim())
}

#[cfg(test)]
mod tests;
