//! A mount of our server: through a bridge, or of `afflux mount`.
//!
//! Owns: the processes of server and bridge, the mount, a program's run on it.
//! Does not own: the bridge (`tests/nfs-check/src/bin/fuse-bridge/main.rs`), the programs.
//! Invariants: server and bridge end with the value.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::options::{MountedOptions, Way};
use super::programs::Program;
use super::volume::Volume;
use crate::ci;

const PATIENCE: Duration = Duration::from_secs(60);

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
    place: PathBuf,
    way: Way,
    server: Child,
    bridge: Option<Child>,
}

impl Mount {
    /// Mounts below `place`.
    pub(super) fn start(built: &Built, place: &Path, way: Way, volume: &Volume) -> Result<Self> {
        Self::with_cache(built, place, way, volume, CACHE_BYTES)
    }

    /// The same with a cache of that size.
    pub(super) fn with_cache(built: &Built, place: &Path, way: Way, volume: &Volume, cache_bytes: u64) -> Result<Self> {
        let (ready, server) = Self::server(built, place, way, volume, cache_bytes)?;
        let mut mount = Self { place: place.to_path_buf(), way, server, bridge: None };
        let line = eventually("the server starts", || {
            let line = fs::read_to_string(&ready).ok().filter(|line| line.ends_with('\n'));
            line.map(Ok).or_else(|| mount.is_running().err().map(Err))
        })??;
        if way == Way::Fuse {
            // It says so once the mount is there.
            return Ok(mount);
        }
        let told: serde_json::Value = serde_json::from_str(&line).context("what the server says")?;
        let port = told["port"].as_u64().context("no port")?;
        let export = told["serving"][0]["export"].as_str().context("no export")?;
        let mut command = Command::new(&built.bridge);
        command.arg(format!("127.0.0.1:{port}")).arg(export).arg(place.join("mnt"));
        let bridge = command.stderr(log(&place.join("bridge.log"))?).spawn().context("fuse-bridge")?;
        mount.bridge = Some(bridge);
        eventually("the mount is there", || {
            let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
            mounts.contains(&format!("nfs-bridge {}", place.join("mnt").display())).then_some(())
        })?;
        Ok(mount)
    }

    /// Starts the server. Returns the file of its first line.
    fn server(built: &Built, place: &Path, way: Way, volume: &Volume, cache_bytes: u64) -> Result<(PathBuf, Child)> {
        for folder in ["mnt", "beside"] {
            fs::create_dir_all(place.join(folder)).context("making folders")?;
        }
        let ready = place.join("ready");
        let mut command = match way {
            Way::Bridge => volume.command(&built.afflux, "serve"),
            Way::Fuse => volume.command(&built.afflux, "mount"),
        };
        match way {
            Way::Bridge => command.args(["--listen", "127.0.0.1:0"]),
            Way::Fuse => command.arg(place.join("mnt")),
        };
        command.args(["--json", "--cache", &cache_bytes.to_string()]);
        command.arg("--control").arg(place.join("control.sock")).arg("--state").arg(place.join("state"));
        command.stdin(Stdio::null()).stdout(File::create(&ready)?).stderr(log(&place.join("server.log"))?);
        Ok((ready, command.spawn().context("afflux")?))
    }

    /// Fails if the server ended by itself.
    pub(super) fn is_running(&mut self) -> Result<()> {
        let ended = self.server.try_wait().context("afflux")?;
        ended.map_or(Ok(()), |status| bail!("the server ended by itself: {status}; see server.log"))
    }

    /// Runs a program in a folder of this round. Returns whether its result was right.
    pub(super) fn runs(&self, program: &Program, round: u64, options: &MountedOptions<'_>) -> Result<bool> {
        let folder = if round == 1 { program.name.to_owned() } else { format!("{}-{round}", program.name) };
        let (here, beside) = (self.files().join(&folder), self.place.join("beside").join(&folder));
        for folder in [&here, &beside] {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        }
        let script = format!("set -e; {}", program.script);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(here).arg(beside).arg(self.way.word());
        shell.arg(options.operations.to_string()).arg(options.place.word());
        shell.arg(options.seeds.to_string()).arg(options.lasts.as_secs().to_string());
        shell.arg(options.first_seed.to_string());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::env::split_paths(&path).chain([ci::own_tools()])).context("PATH")?;
        let status = shell.env("PATH", path).status().context("sh")?;
        Ok(status.success())
    }

    /// The server's process.
    pub(super) fn process(&self) -> u32 {
        self.server.id()
    }

    /// The files as programs see them.
    pub(super) fn files(&self) -> PathBuf {
        self.place.join("mnt")
    }

    /// Unmounts, and ends the server in its own way.
    pub(super) fn end(mut self) -> Result<()> {
        let status = Command::new("umount").arg(self.files()).status().context("umount")?;
        ensure!(status.success(), "umount fails");
        if let Some(bridge) = &mut self.bridge {
            ended("the bridge", bridge)?;
        }
        let status = Command::new("kill").arg(self.server.id().to_string()).status().context("kill")?;
        ensure!(status.success(), "kill fails");
        let status = ended("the server", &mut self.server)?;
        ensure!(status.success(), "the server ends with {status}; see server.log");
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // It is gone already after a usual end.
        let _ = Command::new("umount").arg("-l").arg(self.files()).stderr(Stdio::null()).status();
        for child in self.bridge.iter_mut().chain([&mut self.server]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn log(path: &Path) -> Result<File> {
    File::options().create(true).append(true).open(path).with_context(|| path.display().to_string())
}

fn ended(what: &str, child: &mut Child) -> Result<ExitStatus> {
    eventually(&format!("{what} ends"), || child.try_wait().ok().flatten())
}

fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(found) = found() {
            return Ok(found);
        }
        sleep(Duration::from_millis(50));
    }
    bail!("never: {what}")
}
