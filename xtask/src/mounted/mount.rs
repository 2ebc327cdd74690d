//! A mount of our server: through a bridge, or of `afflux mount`.
//!
//! Owns: the arguments of server and bridge, a program's run on the mount.
//! Does not own: the bridge (`tests/nfs-check/src/bin/fuse-bridge/main.rs`), the programs, the processes
//! (`afflux_rig`).
//! Invariants: server and bridge end with the value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use afflux_rig::{Mounted, Ready};
use anyhow::{Context, Result, bail, ensure};

use super::options::{Storage, Way};
use super::programs::Program;
use super::volume::Volume;
use crate::{ci, words};

/// The cache of a server over which programs run.
pub(super) const CACHE_BYTES: u64 = 128 << 20;

/// The programs that make a mount, and a slow disk below it.
pub(super) struct Built {
    pub(super) afflux: PathBuf,
    pub(super) bridge: PathBuf,
    pub(super) disk: PathBuf,
}

impl Built {
    /// Those in a directory of cargo's.
    pub(super) fn of(folder: &Path) -> Self {
        let [afflux, bridge, disk] = ["afflux", "fuse-bridge", "afflux-disk"].map(|name| folder.join(name));
        Self { afflux, bridge, disk }
    }
}

pub(super) struct Mount {
    directory: PathBuf,
    way: Way,
    mounted: Mounted,
    /// The server behind a bridge.
    server: Option<Ready>,
}

impl Mount {
    /// Mounts below `directory`.
    pub(super) fn start(built: &Built, directory: &Path, way: Way, volume: &Volume) -> Result<Self> {
        Self::with_cache(built, directory, way, volume, CACHE_BYTES)
    }

    /// The same with a cache of that size.
    pub(super) fn with_cache(
        built: &Built,
        directory: &Path,
        way: Way,
        volume: &Volume,
        cache_bytes: u64,
    ) -> Result<Self> {
        fs::create_dir_all(directory.join("beside")).context("making folders")?;
        let (point, cache) = (directory.join("mnt"), cache_bytes.to_string());
        let command = |word| {
            let mut command = volume.command(&built.afflux, word);
            command
                .args(["--cache", &cache])
                .arg("--state")
                .arg(directory.join("state"))
                .env("XDG_STATE_HOME", directory);
            command
        };
        let (mounted, server) = match way {
            Way::Fuse => {
                let mut mount = command("mount");
                mount.arg("--control").arg(directory.join("control.sock")).arg(&point);
                (Mounted::start(&mut mount, &point, &directory.join("log"))?, None)
            }
            Way::Bridge => {
                let server = Ready::start(command("serve").args(["--listen", "127.0.0.1:0"]), directory)?;
                let mut bridge = Command::new(&built.bridge);
                bridge.arg(server.address().to_string()).arg(&server.export).arg(&point);
                (Mounted::start(&mut bridge, &point, &directory.join("bridge.log"))?, Some(server))
            }
        };
        Ok(Self { directory: directory.to_path_buf(), way, mounted, server })
    }

    /// Fails if the server ended by itself.
    pub(super) fn check_running(&mut self) -> Result<()> {
        let ended = self.server.as_mut().map_or_else(|| self.mounted.ended(), Ready::ended);
        ended.context("afflux")?.map_or(Ok(()), |status| bail!("the server ended by itself: {status}; see its log"))
    }

    /// Runs a program in a folder of this round. Returns whether its result was right.
    pub(super) fn runs(&self, program: &Program, round: u64, words: &words::Mounted, files: Storage) -> Result<bool> {
        let folder = if round == 1 { program.name.to_owned() } else { format!("{}-{round}", program.name) };
        let (here, beside) = (self.files().join(&folder), self.directory.join("beside").join(&folder));
        for folder in [&here, &beside] {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        }
        let script = format!("set -e; {}", program.script);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(here).arg(beside).arg(self.way.word());
        let [operations, seeds, first_seed] = words.of_fsx().map(|number| number.to_string());
        shell.args([&operations, files.word(), &seeds, &words.lasts().as_secs().to_string(), &first_seed]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::env::split_paths(&path).chain([ci::own_tools()])).context("PATH")?;
        let status = shell.env("PATH", path).status().context("sh")?;
        Ok(status.success())
    }

    /// The server's process.
    pub(super) fn process(&self) -> u32 {
        self.server.as_ref().map_or_else(|| self.mounted.process(), Ready::process)
    }

    /// The files as programs see them.
    pub(super) fn files(&self) -> PathBuf {
        self.directory.join("mnt")
    }

    /// Unmounts, and ends the server in its own way.
    pub(super) fn end(self) -> Result<()> {
        let unmounted = self.mounted.end()?;
        let status: ExitStatus = self.server.map_or(Ok(unmounted), Ready::stop)?;
        ensure!(status.success(), "the server ends with {status}; see its log");
        Ok(())
    }
}
