//! Linux 6.1's own dirty throttling, in a guest whose time is counted in instructions.
//!
//! An instruction takes a nanosecond of the guest's time, and idle time takes none of ours. So a figure depends neither on
//! this machine nor on its load, and a disk's rate is exact. The table goes to the standard output; the laboratory keeps
//! some of them and compares the simulator with them (`afflux-lab run throttled --case recorded`).
//!
//! Owns: the words of `cargo xtask guest-law`, the emulated machine.
//! Does not own: the Debian (`root`), the disk and the load (`tests/guest/law`).
//! Invariants: the guest writes no disk of this machine. A guest that does not end is killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, ensure};

use super::archive;
use super::options::folder;
use super::root;
use super::tied::tied;
use crate::{ci, repository};

const USAGE: &str = "usage: cargo xtask guest-law [--load stream|at-rate|small-sync|burst] [--rate N] [--dirty-bytes N] [--seconds N] [--memory MIB] [--request-ns N]";
/// The loads that `load.py` knows.
const LOADS: [&str; 4] = ["stream", "at-rate", "small-sync", "burst"];
/// Seconds that the guest may take here: it takes two minutes of a processor.
const TIME_MAX: &str = "1800";
const KERNEL_WORDS: &str = "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check tsc=reliable";

/// The load's parameters.
#[derive(Debug, PartialEq, Eq)]
struct Load {
    name: &'static str,
    /// Bytes a second of the load `at-rate`. 0: full speed.
    rate: u64,
    /// `vm.dirty_bytes`; the background limit is half of it. 0: the kernel's ratios.
    dirty_bytes: u64,
    seconds: u64,
    memory_mib: u64,
    /// Time of the disk for a request of 128 KiB.
    request_ns: u64,
}

impl Load {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut load =
            Self { name: LOADS[0], rate: 0, dirty_bytes: 0, seconds: 45, memory_mib: 4096, request_ns: 5_242_880 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().copied().context(USAGE)?;
            let field = match *word {
                "--load" => {
                    load.name = LOADS.into_iter().find(|known| *known == value).context(USAGE)?;
                    continue;
                }
                "--rate" => &mut load.rate,
                "--dirty-bytes" => &mut load.dirty_bytes,
                "--seconds" => &mut load.seconds,
                "--memory" => &mut load.memory_mib,
                "--request-ns" => &mut load.request_ns,
                _ => return Err(anyhow::anyhow!(USAGE)),
            };
            *field = value.parse().ok().context(USAGE)?;
        }
        Ok(load)
    }

    /// The head of the table, as far as it is known here.
    fn head(&self) -> String {
        let Self { name, rate, dirty_bytes, seconds, memory_mib, request_ns } = self;
        format!(
            "# cargo xtask guest-law --load {name} --rate {rate} --dirty-bytes {dirty_bytes} --seconds {seconds} --memory {memory_mib} \
             --request-ns {request_ns}\n# load: {name}\n# rate: {rate}\n# dirty_bytes: {dirty_bytes}\n# seconds: {seconds}\n\
             # memory_mib: {memory_mib}\n# request_ns: {request_ns}\n"
        )
    }
}

/// Runs the load once and prints its table.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let load = Load::parse(words)?;
    ci::install_guest()?;
    let root = root::made("bookworm", false)?;
    let scratch = Scratch::guarded(&repository::target(), "guest")?;
    let text = |name: &str| fs::read_to_string(folder().join("law").join(name)).context("a file of the guest");
    let (init, script, program) = (text("init")?, text("run.sh")?, text("load.py")?);
    let mut initrd = fs::read(root.join("initrd")).context("the initrd")?;
    archive::append(&mut initrd, &[("init", &init), ("run.sh", &script), ("load.py", &program)]);
    let place = scratch.path().join("initrd");
    fs::write(&place, initrd).context("the initrd")?;
    let said = machine(&load, &root, &place).env("TMPDIR", scratch.path()).output().context("QEMU")?;
    let said = String::from_utf8_lossy(&said.stdout).replace('\r', "");
    let table: String = said.lines().filter(|line| is_of_table(line)).map(|line| format!("{line}\n")).collect();
    ensure!(table.contains("# sync_ms: "), "the guest ended without a table:\n{said}");
    print!("{}{table}", load.head());
    Ok(())
}

/// Whether a line of the guest's console belongs to the table.
fn is_of_table(line: &str) -> bool {
    line.starts_with("# ") || line.starts_with("second ") || line.starts_with(|first: char| first.is_ascii_digit())
}

fn machine(load: &Load, root: &Path, initrd: &Path) -> Command {
    let mut command = tied("timeout");
    command.args(["-s", "KILL", TIME_MAX, "qemu-system-x86_64", "-machine", "pc", "-cpu", "max", "-smp", "1"]);
    command.args(["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-nodefaults", "-display", "none"]);
    command.args(["-no-reboot", "-serial", "stdio", "-m", &load.memory_mib.to_string()]);
    command.arg("-kernel").arg(root.join("kernel")).arg("-initrd").arg(initrd);
    let Load { name, rate, dirty_bytes, seconds, request_ns, .. } = load;
    let words =
        format!("law=load={name},rate={rate},dirty_bytes={dirty_bytes},seconds={seconds},request_ns={request_ns}");
    command.arg("-append").arg(format!("{KERNEL_WORDS} {words}"));
    let image = root.join("root.img");
    command.arg("-drive").arg(format!("file={},if=virtio,format=raw,snapshot=on,cache=unsafe", image.display()));
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

#[cfg(test)]
mod tests;
