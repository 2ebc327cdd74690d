//! A client on this host that loads a server in the guest until the guest is reset, again and again.
//!
//! Owns: its process, its ports, its words.
//! Does not own: the load and its figures (`tests/nfs-check/src/kills`), the start of the server (the case).
//! Invariants: the client ends with the value, and with this process if that is killed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};

use afflux_rig::Ending;
use anyhow::{Context, Result, bail};

use super::machine::Machine;
use super::tied::tied;

pub(super) struct HostLoad {
    program: PathBuf,
    running: Option<Running>,
}

struct Running {
    _child: Ending,
    words: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl HostLoad {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program, running: None }
    }

    /// The guest's server answers. Starts the client the first time: `NAME PORT MOUNT-PORT EXPORT RESETS`. Goes on
    /// until the client wants a reset, which nobody in the guest learns of, or has its figures.
    pub(super) fn go_on(&mut self, words: &str, machine: &Machine) -> Result<()> {
        if self.running.is_none() {
            self.running = Some(self.started(words, machine)?);
        }
        let Some(running) = &mut self.running else { bail!("the client does not run") };
        let mut line = String::new();
        running.said.read_line(&mut line).context("the client's words")?;
        match line.trim_end().split_once(' ') {
            None if line == "kill\n" => {
                machine.reset()?;
                running.words.write_all(b"reset\n").context("the client's input")
            }
            Some(("end", figures)) => self.ended(machine, &format!("ok {figures}")),
            _ => self.ended(machine, "error the client ended; its last words are above"),
        }
    }

    /// The next case has a client of its own.
    fn ended(&mut self, machine: &Machine, said: &str) -> Result<()> {
        self.running = None;
        machine.tell(said)
    }

    fn started(&self, words: &str, machine: &Machine) -> Result<Running> {
        let [name, port, mount_port, path, resets] = words.split(' ').collect::<Vec<_>>()[..] else {
            bail!("no load: {words}");
        };
        let [nfs, mount] = [forwarded(machine, port)?, forwarded(machine, mount_port)?];
        let mut command = tied(&self.program);
        command.args(["asking", name, &nfs, &mount, path, resets]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| self.program.display().to_string())?;
        let words = child.stdin.take().context("the client's input")?;
        let said = BufReader::new(child.stdout.take().context("the client's output")?);
        Ok(Running { _child: Ending(child), words, said })
    }
}

/// An address of this host that leads to a port of the guest.
fn forwarded(machine: &Machine, port: &str) -> Result<String> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("a free port")?;
    machine.monitor(&format!("hostfwd_add net tcp:127.0.0.1:{}-10.0.2.15:{port}", address.port()))?;
    Ok(address.to_string())
}
