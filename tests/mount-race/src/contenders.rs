//! The file systems that race: their programs, their mounts.
//!
//! Owns: the start and the end of each, the reason why one does not take part.
//! Does not own: the cases.
//! Invariants: each works in directories of its own on the same file system. A contender starts with its first case,
//! and all end with the race; no mount stays. A mount that cannot be is tried once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use afflux_scratch::within;
use anyhow::{Context, Result, bail};

use crate::bare;
use crate::options::Options;
use crate::processes::Usage;

const PATIENCE: Duration = Duration::from_secs(20);
/// A drain at the end may take longer.
const END_PATIENCE: Duration = Duration::from_secs(60);
const CACHE: &str = "1GiB";

/// A contender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// The directory itself.
    Host,
    /// A server of one file in memory.
    Bare,
    Afflux,
    /// Ours, with the kernel's cache for reads.
    AffluxKernelCache,
    PassthroughLlDirect,
    PassthroughLl,
    PassthroughHpDirect,
    PassthroughHp,
    MergerfsDirect,
    Mergerfs,
    /// Our NFS server behind a bridge, as kernels without a client have it.
    Nfs,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Bare => "bare server",
            Self::Afflux => "afflux",
            Self::AffluxKernelCache => "afflux --kernel-cache",
            Self::PassthroughLlDirect => "passthrough_ll cache=never",
            Self::PassthroughLl => "passthrough_ll cache=always",
            Self::PassthroughHpDirect => "passthrough_hp --nocache",
            Self::PassthroughHp => "passthrough_hp",
            Self::MergerfsDirect => "mergerfs cache.files=off",
            Self::Mergerfs => "mergerfs cache.files=full",
            Self::Nfs => "afflux, NFS by a bridge",
        }
    }
}

/// A contender that runs. Dropped, it unmounts and ends.
pub(crate) struct Running {
    children: Vec<Child>,
    point: Option<PathBuf>,
    /// Where programs work.
    pub(crate) place: PathBuf,
}

impl Running {
    /// The use of the machine by its servers.
    pub(crate) fn usage(&self) -> Usage {
        self.children.iter().fold(Usage::default(), |sum, child| sum.plus(Usage::of(child.id())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(point) = &self.point {
            // Ours ends with its mount, after it has written everything.
            let unmounted = Command::new("umount").arg(point).stderr(Stdio::null()).status();
            if !unmounted.is_ok_and(|status| status.success()) {
                let _ = Command::new("umount").arg("-l").arg(point).stderr(Stdio::null()).status();
            }
        }
        for child in self.children.iter_mut().rev() {
            let _ = Command::new("kill").arg(child.id().to_string()).stderr(Stdio::null()).status();
            if !within(END_PATIENCE, || matches!(child.try_wait(), Ok(Some(_)))) {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

/// All contenders of a race.
pub(crate) struct Contenders<'a> {
    options: &'a Options,
    running: BTreeMap<Who, Result<Running, String>>,
    kernel_cache: Option<bool>,
}

impl<'a> Contenders<'a> {
    pub(crate) fn new(options: &'a Options) -> Self {
        Self { options, running: BTreeMap::new(), kernel_cache: None }
    }

    /// A contender over the race's own directory; none if it cannot take part.
    pub(crate) fn running(&mut self, who: Who) -> Option<&Running> {
        if !self.running.contains_key(&who) {
            // mergerfs has a meaning of its own for '='.
            let home = self.options.directory.join(who.name().replace(|it: char| !it.is_alphanumeric(), "-"));
            let started = self.start(who, &home, &home.join("data")).map_err(|error| format!("{error:#}"));
            self.running.insert(who, started);
        }
        self.running.get(&who)?.as_ref().ok()
    }

    /// Starts a contender over a directory, with its files in `home`.
    pub(crate) fn start(&mut self, who: Who, home: &Path, data: &Path) -> Result<Running> {
        for directory in [home, data] {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        let point = home.join("point");
        if who == Who::Host {
            return Ok(Running { children: Vec::new(), point: None, place: data.to_owned() });
        }
        fs::create_dir_all(&point)?;
        let log = || File::create(home.join("log")).context("a log");
        let mut running = Running { children: Vec::new(), point: Some(point.clone()), place: point.clone() };
        let mut command = match who {
            Who::Afflux | Who::AffluxKernelCache => {
                let mut command = self.afflux(home, "mount", who)?;
                command.arg(data).arg(&point);
                command
            }
            Who::Nfs => {
                let bridge = self.options.bridge.as_ref().context("no bridge")?;
                let mut server = self.afflux(home, "serve", who)?;
                server.arg(data).args(["--listen", "127.0.0.1:0"]);
                let mut server = server.stdout(Stdio::piped()).stderr(log()?).spawn().context("afflux")?;
                let ready = ready(server.stdout.take());
                running.children.push(server);
                let (port, export) = (field(&ready, "\"port\":"), field(&ready, "\"export\":\""));
                let (Some(port), Some(export)) = (port, export) else { bail!("afflux does not start: {ready}") };
                let mut command = Command::new(bridge);
                command.arg(format!("127.0.0.1:{port}")).arg(export).arg(&point);
                command
            }
            _ => peer(who, self.options, data, &point)?,
        };
        let before = fs::metadata(&point)?.dev();
        let ours = matches!(who, Who::Afflux | Who::AffluxKernelCache);
        let output = if ours { Stdio::piped() } else { Stdio::null() };
        let log = File::options().create(true).append(true).open(home.join("log"))?;
        let mut child = command.stdin(Stdio::null()).stdout(output).stderr(log).spawn().context("its program")?;
        if let Some(stdout) = child.stdout.take() {
            ready(Some(stdout));
        }
        let is_mounted = || fs::metadata(&point).is_ok_and(|found| found.dev() != before);
        within(PATIENCE, || is_mounted() || matches!(child.try_wait(), Ok(Some(_))));
        running.children.push(child);
        if !is_mounted() {
            let said = fs::read_to_string(home.join("log")).unwrap_or_default();
            bail!("{} does not mount: {}", who.name(), said.lines().next_back().unwrap_or("it says nothing"));
        }
        Ok(running)
    }

    /// Our command with the arguments of every race.
    fn afflux(&mut self, home: &Path, verb: &str, who: Who) -> Result<Command> {
        let mut command = Command::new(&self.options.afflux);
        command.arg(verb).args(["--json", "--cache", CACHE]).arg("--control").arg(home.join("control.sock"));
        command.arg("--state").arg(home.join("state"));
        if who == Who::AffluxKernelCache {
            let program = &self.options.afflux;
            let known = *self.kernel_cache.get_or_insert_with(|| {
                let help = Command::new(program).args(["mount", "--help"]).output();
                help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--kernel-cache"))
            });
            if !known {
                bail!("this afflux has no --kernel-cache");
            }
            command.arg("--kernel-cache");
        }
        Ok(command)
    }

    /// Why contenders do not take part.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let left_out = |(who, running): (&Who, &Result<Running, String>)| {
            running.as_ref().err().map(|why| format!("{} does not take part: {why}", who.name()))
        };
        self.running.iter().filter_map(left_out).collect()
    }
}

/// The command of another's file system, in the foreground.
fn peer(who: Who, options: &Options, data: &Path, point: &Path) -> Result<Command> {
    let command = match who {
        Who::Bare => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(bare::WORD).arg(point);
            command
        }
        Who::PassthroughLlDirect | Who::PassthroughLl => {
            let program = options.passthrough_ll.as_ref().context("no passthrough_ll")?;
            let cache = if who == Who::PassthroughLl { "always" } else { "never" };
            let mut command = Command::new(program);
            command.args(["-f", "-o", "allow_other", "-o"]);
            command.arg(format!("source={},cache={cache}", data.display())).arg(point);
            command
        }
        Who::PassthroughHpDirect | Who::PassthroughHp => {
            let mut command = Command::new(options.passthrough_hp.as_ref().context("no passthrough_hp")?);
            command.arg("--foreground").args((who == Who::PassthroughHpDirect).then_some("--nocache"));
            command.arg(data).arg(point);
            command
        }
        _ => {
            let cache = if who == Who::Mergerfs { "full" } else { "off" };
            let mut command = Command::new("mergerfs");
            command.args(["-f", "-o"]).arg(format!("allow_other,cache.files={cache}")).arg(data).arg(point);
            command
        }
    };
    Ok(command)
}

/// The line that our server prints when it is ready.
fn ready(stdout: Option<ChildStdout>) -> String {
    let mut line = String::new();
    if let Some(stdout) = stdout {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    line
}

/// The text after a key in a line of JSON, up to the end of the value.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.split_once(key)?.1;
    Some(rest.split(['"', ',', '}']).next()?.trim())
}
