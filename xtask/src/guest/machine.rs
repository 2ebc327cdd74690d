//! An emulated machine.
//!
//! Owns: the process of QEMU, its disks, its monitor, the line from and to the guest.
//! Does not own: the meaning of lines (`talk`).
//! Invariants: QEMU ends with the value, and with this process if that is killed. The root's image is never written:
//! changes go to a temporary file.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use afflux_rig::Ending;
use anyhow::{Context, Result, bail};

use super::tied::tied;
use crate::words::Guest;

const QEMU: &str = "qemu-system-x86_64";

/// The disks of cases, and their sizes.
const DISKS: [(&str, u64); 2] = [("vdc", 1 << 30), ("vdd", 512 << 20)];

/// The timer is not checked: a busy host may emulate it too late, and the kernel would wait for ever.
const KERNEL_WORDS: &str = "console=ttyS0 panic=-1 quiet net.ifnames=0 systemd.show_status=0 systemd.log_target=null mitigations=off no_timer_check";

/// The prompt of the monitor.
const PROMPT: &[u8] = b"(qemu) ";

pub(super) struct Machine {
    _qemu: Ending,
    monitor: UnixStream,
    line: UnixStream,
    lines: Receiver<String>,
}

pub(super) enum Answer {
    Said(String),
    /// No line came in time.
    Silent,
    /// The machine is off.
    Ended,
}

impl Machine {
    pub(super) fn start(words: &Guest, root: &Path, kit: &Path, scratch: &Path, logs: &Path) -> Result<Self> {
        let sockets = ["line", "monitor"].map(|name| scratch.join(name));
        let listeners = [listener(&sockets[0])?, listener(&sockets[1])?];
        let (cpus, memory_mib) = (words.cpus.map_or(1, |cpus| cpus.0), words.memory.map_or(1024, |mib| mib.0));
        let mut command = tied("nice");
        command.args(["-n", "5", QEMU, "-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults"]);
        command.args(["-display", "none", "-smp", &cpus.to_string(), "-m", &memory_mib.to_string()]);
        command.arg("-kernel").arg(root.join("kernel")).arg("-initrd").arg(root.join("initrd"));
        command.args([
            "-append",
            KERNEL_WORDS,
            "-netdev",
            "user,id=net",
            "-device",
            "virtio-net-pci,netdev=net,romfile=",
        ]);
        command.arg("-serial").arg(format!("file:{}", logs.join("console.log").display()));
        command.arg("-serial").arg(format!("unix:{}", sockets[0].display()));
        command.arg("-monitor").arg(format!("unix:{}", sockets[1].display()));
        command
            .arg("-drive")
            .arg(format!("file={},if=none,id=root,format=raw,snapshot=on", root.join("root.img").display()));
        command.args(["-device", "virtio-blk-pci,drive=root,serial=root"]);
        command.arg("-drive").arg(format!("file={},if=none,id=kit,format=raw,readonly=on", kit.display()));
        command.args(["-device", "virtio-blk-pci,drive=kit,serial=kit"]);
        for (name, bytes) in DISKS {
            let file = scratch.join(name);
            File::create(&file).and_then(|file| file.set_len(bytes)).context("a disk")?;
            // A node of its own: it stays when the disk is unplugged.
            let node =
                format!("driver=raw,node-name={name},discard=unmap,file.driver=file,file.filename={}", file.display());
            command.arg("-blockdev").arg(node);
            command.arg("-device").arg(format!("virtio-blk-pci,drive={name},id=disk-{name},serial={name}"));
        }
        command.env("TMPDIR", scratch).stdin(Stdio::null()).stdout(Stdio::null());
        let mut qemu = command.spawn().context(QEMU)?;
        let [line, monitor] = listeners.map(|listener| accepted(&listener, &mut qemu));
        let (line, monitor) = (line?, monitor?);
        let lines = heard(line.try_clone().context("the guest's line")?);
        let machine = Self { _qemu: Ending(qemu), monitor, line, lines };
        machine.until_prompt()?;
        Ok(machine)
    }

    /// The next line of the guest.
    pub(super) fn hear(&mut self, at_most: Duration) -> Result<Answer> {
        match self.lines.recv_timeout(at_most) {
            Ok(line) => Ok(Answer::Said(line)),
            Err(RecvTimeoutError::Timeout) => Ok(Answer::Silent),
            Err(RecvTimeoutError::Disconnected) => Ok(Answer::Ended),
        }
    }

    /// Sends the guest a line.
    pub(super) fn tell(&self, line: &str) -> Result<()> {
        (&self.line).write_all(format!("{line}\n").as_bytes()).context("the guest's line")
    }

    /// Gives the monitor a command. Returns the line for the guest.
    pub(super) fn monitor(&self, command: &str) -> Result<String> {
        (&self.monitor).write_all(format!("{command}\n").as_bytes()).context("the monitor")?;
        let said = self.until_prompt()?;
        let error = said.lines().find(|line| line.starts_with("Error") || line.contains("unknown command"));
        Ok(error.map_or_else(|| "ok".to_owned(), |error| format!("error {error}")))
    }

    /// Resets the machine. Nobody is told: the guest that asked is gone.
    pub(super) fn reset(&self) -> Result<()> {
        self.monitor("system_reset").map(drop)
    }

    fn until_prompt(&self) -> Result<String> {
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !said.ends_with(PROMPT) {
            if (&self.monitor).read(&mut byte).context("the monitor")? == 0 {
                bail!("QEMU ended");
            }
            said.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

fn listener(path: &PathBuf) -> Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).with_context(|| path.display().to_string())
}

/// QEMU's connection. QEMU connects at its start, or ends.
fn accepted(listener: &UnixListener, qemu: &mut Child) -> Result<UnixStream> {
    listener.set_nonblocking(true).context("a socket")?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).context("a socket")?;
                return Ok(stream);
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error).context("a socket"),
            Err(_) => {}
        }
        if let Some(status) = qemu.try_wait().context(QEMU)? {
            bail!("QEMU does not start: {status}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Reads the guest's lines in a thread, which ends with the machine.
fn heard(line: UnixStream) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        let (mut reader, mut bytes) = (BufReader::new(line), Vec::new());
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            if sender.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
                break;
            }
            bytes.clear();
        }
    });
    lines
}
