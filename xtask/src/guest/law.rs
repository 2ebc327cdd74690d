//! Linux 6.1's own dirty throttling, in a guest whose time is counted in instructions.
//!
//! An instruction takes a nanosecond of the guest's time, and idle time takes none of ours. So a figure depends neither on
//! this machine nor on its load, and a disk's rate is exact. The table goes to the standard output; the laboratory keeps
//! some of them and compares the simulator with them (`afflux-lab run throttled --case recorded`).
//!
//! Owns: the emulated machine, the parameters of the load.
//! Does not own: the words (`words`), the Debian (`root`), the disk and the load (`tests/guest/law`).
//! Invariants: the guest writes no disk of this machine. A guest that does not end is killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use afflux_rig::words::Number;
use afflux_scratch::Scratch;
use anyhow::{Context, Result, ensure};

use super::archive;
use super::cases::folder;
use super::root;
use super::tied::tied;
use crate::choices::Load;
use crate::words::GuestLaw;
use crate::{ci, repository};

/// Seconds that the guest may take here: it takes two minutes of a processor.
const TIME_MAX: &str = "1800";
const KERNEL_WORDS: &str = "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check tsc=reliable";

/// The guest's memory in MiB, and the load's parameters with their names.
type Parameters = (u64, [(&'static str, String); 5]);

fn parameters(words: &GuestLaw) -> Parameters {
    let number = |given: Option<Number>| given.map_or(0, |number| number.0).to_string();
    let load = [
        ("load", words.load.unwrap_or(Load::Stream).word().to_owned()),
        ("rate", number(words.rate)),
        ("dirty_bytes", number(words.dirty_bytes)),
        ("seconds", words.seconds.map_or(45, |seconds| seconds.0).to_string()),
        ("request_ns", words.request_ns.map_or(5_242_880, |ns| ns.0).to_string()),
    ];
    (words.memory.map_or(4096, |mib| mib.0), load)
}

/// The head of the table, as far as it is known here.
fn head((memory_mib, load): &Parameters) -> String {
    let words: String = load.iter().map(|(name, value)| format!(" --{} {value}", name.replace('_', "-"))).collect();
    let lines: String = load.iter().map(|(name, value)| format!("# {name}: {value}\n")).collect();
    format!("# cargo xtask guest-law --memory {memory_mib}{words}\n{lines}# memory_mib: {memory_mib}\n")
}

/// Runs the load once and prints its table.
pub(crate) fn run(words: &GuestLaw) -> Result<()> {
    let load = parameters(words);
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
    print!("{}{table}", head(&load));
    Ok(())
}

/// Whether a line of the guest's console belongs to the table.
fn is_of_table(line: &str) -> bool {
    line.starts_with("# ") || line.starts_with("second ") || line.starts_with(|first: char| first.is_ascii_digit())
}

fn machine((memory_mib, load): &Parameters, root: &Path, initrd: &Path) -> Command {
    let mut command = tied("timeout");
    command.args(["-s", "KILL", TIME_MAX, "qemu-system-x86_64", "-machine", "pc", "-cpu", "max", "-smp", "1"]);
    command.args(["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-nodefaults", "-display", "none"]);
    command.args(["-no-reboot", "-serial", "stdio", "-m", &memory_mib.to_string()]);
    command.arg("-kernel").arg(root.join("kernel")).arg("-initrd").arg(initrd);
    let words: Vec<String> = load.iter().map(|(name, value)| format!("{name}={value}")).collect();
    command.arg("-append").arg(format!("{KERNEL_WORDS} law={}", words.join(",")));
    let image = root.join("root.img");
    command.arg("-drive").arg(format!("file={},if=virtio,format=raw,snapshot=on,cache=unsafe", image.display()));
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

#[cfg(test)]
mod tests;
