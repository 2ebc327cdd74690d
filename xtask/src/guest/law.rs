//! Linux's own dirty throttling, in a guest whose time is counted in instructions: under a writer, and under an NFS
//! server.
//!
//! An instruction takes a nanosecond of the guest's time, and idle time takes none of ours. So a figure depends neither
//! on this machine nor on its load, and a disk's rate is exact. The table goes to the standard output; the laboratory
//! keeps some of them and compares the simulator with them (`afflux-lab run throttled --case recorded`).
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
use crate::words::{GuestLaw, Load, Server};
use crate::{ci, repository};

/// Seconds that the guest may take here: it takes two minutes of a processor.
const TIME_MAX: &str = "1800";
const KERNEL_WORDS: &str = "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check tsc=reliable";

/// The files of `tests/guest/law`, by their names in the guest's root.
const FILES: [&str; 6] = ["init", "run.sh", "load.py", "copy.sh", "copy.py", "programs.sh"];

/// The guest's memory in MiB, and the load's parameters with their names.
type Parameters = (u64, Vec<(&'static str, String)>);

fn parameters(words: &GuestLaw) -> Parameters {
    let number = |given: Option<Number>| given.map_or(0, |number| number.0).to_string();
    let kind = words.load.unwrap_or(Load::Stream);
    let mut load = vec![
        ("load", kind.word().to_owned()),
        ("rate", number(words.rate)),
        ("dirty_bytes", number(words.dirty_bytes)),
        ("seconds", words.seconds.map_or(45, |seconds| seconds.0).to_string()),
        ("request_ns", words.request_ns.map_or(5_242_880, |ns| ns.0).to_string()),
    ];
    if kind == Load::Copy {
        load.push(("max_bytes", number(words.max_bytes)));
    }
    if matches!(kind, Load::Copy | Load::Programs) {
        load.push(("server", words.server.unwrap_or(Server::Knfsd).word().to_owned()));
    }
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
    let root = root::made(words.suite.as_deref().unwrap_or("bookworm"), false)?;
    let scratch = Scratch::guarded(&repository::target(), "guest")?;
    let read = |name: &'static str| Ok((name, fs::read(folder().join("law").join(name)).context(name)?));
    let mut files = FILES.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    if let Some(program) = &words.program {
        let place = scratch.path().join("afflux");
        let stripped = Command::new("strip").arg("-o").arg(&place).arg(program).status().context("strip")?;
        ensure!(stripped.success(), "{} is no program", program.display());
        files.push(("afflux", fs::read(place).context("the program")?));
    }
    let is_ours = matches!(words.server, Some(Server::Afflux | Server::AffluxAsync));
    ensure!(
        !is_ours || words.program.is_some(),
        "--server {} needs --program FILE",
        words.server.unwrap_or(Server::Afflux).word()
    );
    let is_of_copy = matches!(words.server, None | Some(Server::Knfsd | Server::Afflux));
    ensure!(words.load != Some(Load::Copy) || is_of_copy, "the servers of --load copy are knfsd and afflux");
    let mut initrd = fs::read(root.join("initrd")).context("the initrd")?;
    archive::append(&mut initrd, &files);
    let place = scratch.path().join("initrd");
    fs::write(&place, initrd).context("the initrd")?;
    let said = machine(&load, &root, &place).env("TMPDIR", scratch.path()).output().context("QEMU")?;
    let said = String::from_utf8_lossy(&said.stdout).replace('\r', "");
    let table: String = said.lines().filter(|line| is_of_table(line)).map(|line| format!("{line}\n")).collect();
    ensure!(table.contains("_ms: ") || table.contains("_us: "), "the guest ended without a table:\n{said}");
    print!("{}{table}", head(&load));
    Ok(())
}

/// Whether a line of the guest's console belongs to the table.
fn is_of_table(line: &str) -> bool {
    ["# ", "second ", "window "].iter().any(|head| line.starts_with(head))
        || line.starts_with(|first: char| first.is_ascii_digit())
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
