//! The file systems that race: their programs, their mounts.
//!
//! Owns: their arguments, the reason why one does not take part.
//! Does not own: the cases; the start and the end of a process (`afflux_rig`).
//! Invariants: each works in directories of its own on the same file system. A contender starts with its first case,
//! and all end with the race; no mount stays. A mount that cannot be is tried once.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use afflux_rig::{Measurement, Mounted, Ready, choice};
use anyhow::{Context, Result, bail};

use crate::bare;
use crate::options::Options;

const CACHE: &str = "1GiB";

choice! {
    /// A contender.
    pub(crate) Who {
        /// The directory itself.
        Host = "host",
        /// A server of one file in memory.
        Bare = "bare server",
        Afflux = "afflux",
        /// Ours, with the kernel's cache for reads.
        AffluxKernelCache = "afflux --kernel-cache",
        PassthroughLlDirect = "passthrough_ll cache=never",
        PassthroughLl = "passthrough_ll cache=always",
        PassthroughHpDirect = "passthrough_hp --nocache",
        PassthroughHp = "passthrough_hp",
        MergerfsDirect = "mergerfs cache.files=off",
        Mergerfs = "mergerfs cache.files=full",
        /// Our NFS server behind a bridge, as kernels without a client have it.
        Nfs = "afflux, NFS by a bridge",
    }
}

/// A contender that runs. Dropped, it unmounts and ends.
pub(crate) struct Running {
    mounted: Option<Mounted>,
    /// The server behind a bridge.
    server: Option<Ready>,
    /// Where programs work.
    pub(crate) place: PathBuf,
}

impl Running {
    /// Begins a measurement beside its servers.
    pub(crate) fn measured(&self) -> Measurement {
        let processes = [self.mounted.as_ref().map(Mounted::process), self.server.as_ref().map(Ready::process)];
        Measurement::begin(processes.into_iter().flatten())
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

    /// A contender over the race's own directory.
    pub(crate) fn running(&mut self, who: Who) -> Result<&Running> {
        if !self.running.contains_key(&who) {
            // mergerfs has a meaning of its own for '='.
            let home = self.options.directory.join(who.word().replace(|it: char| !it.is_alphanumeric(), "-"));
            let started = self.start(who, &home, &home.join("data")).map_err(|error| format!("{error:#}"));
            self.running.insert(who, started);
        }
        match &self.running[&who] {
            Ok(running) => Ok(running),
            Err(why) => bail!("{why}"),
        }
    }

    /// Starts a contender over a directory, with its files in `home`.
    pub(crate) fn start(&mut self, who: Who, home: &Path, data: &Path) -> Result<Running> {
        for directory in [home, data] {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        if who == Who::Host {
            return Ok(Running { mounted: None, server: None, place: data.to_owned() });
        }
        let (point, mut server) = (home.join("point"), None);
        let mut command = match who {
            Who::Afflux | Who::AffluxKernelCache => {
                let mut command = self.afflux(home, "mount", who)?;
                command.arg("--control").arg(home.join("control.sock")).arg(data).arg(&point);
                command
            }
            Who::Nfs => {
                let mut serve = self.afflux(home, "serve", who)?;
                let ready = Ready::start(serve.arg(data).args(["--listen", "127.0.0.1:0"]), home)?;
                let mut command = Command::new(&self.options.bridge);
                command.arg(ready.address().to_string()).arg(&ready.export).arg(&point);
                server = Some(ready);
                command
            }
            _ => peer(who, self.options, data, &point)?,
        };
        let mounted = Mounted::start(&mut command, &point, &home.join("log"))?;
        Ok(Running { mounted: Some(mounted), server, place: point })
    }

    /// Our command with the arguments of every race.
    fn afflux(&mut self, home: &Path, verb: &str, who: Who) -> Result<Command> {
        let mut command = Command::new(&self.options.afflux);
        command.arg(verb).args(["--cache", CACHE]).arg("--state").arg(home.join("state")).env("XDG_STATE_HOME", home);
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
            let cache = if who == Who::PassthroughLl { "always" } else { "never" };
            let mut command = Command::new(&options.passthrough_ll);
            command.args(["-f", "-o", "allow_other", "-o"]);
            command.arg(format!("source={},cache={cache}", data.display())).arg(point);
            command
        }
        Who::PassthroughHpDirect | Who::PassthroughHp => {
            let mut command = Command::new(&options.passthrough_hp);
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
