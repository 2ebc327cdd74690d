//! Runs ordinary programs on a mount: of our NFS server through a bridge, or of `afflux mount`; over a directory, or
//! over a volume in a store whose gateway is killed meanwhile.
//!
//! Owns: the order of a run, the verdicts.
//! Does not own: the words (`words`, `options`), the programs (`programs`, `memory`, `xfstests`), the mount (`mount`),
//! the store's programs (`gateway`).
//! Invariants: each program has its own folders, and runs whether or not earlier ones failed. Programs that are not
//! installed are named. Each program meets a kill, if there are kills. The gateway alone is killed: one server serves
//! all programs. A second server then shows the same files, byte by byte.

mod gateway;
mod health;
mod listing;
mod memory;
mod mount;
mod options;
mod programs;
mod volume;
mod xfstests;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail, ensure};

use crate::races::WITH_BRIDGE;
use crate::{ci, repository, words};
use gateway::{Gateway, Kills};
use health::Messages;
use listing::Listing;
use mount::{Built, CACHE_BYTES, Mount};
use options::{Storage, Way};
use programs::{OF_FUSE, PROGRAMS, Program};
use volume::Volume;

/// The server with volumes in stores, the bridge, a Ceph, as arguments of `cargo build`.
const WITH_STORES: [&str; 8] = [
    "-p",
    "afflux-command",
    "-p",
    "afflux-nfs-check",
    "-p",
    "afflux-gateway",
    "--features",
    "afflux-command/object,afflux-nfs-check/fuse",
];

/// The slow disk.
const DISK: [&str; 2] = ["-p", "afflux-disk"];

/// Builds the programs, mounts, and runs the named tests, or all.
pub(crate) fn run(words: &words::Mounted) -> Result<()> {
    let storage = words.storage()?;
    if let Some(suite) = &words.xfstests {
        return on_scratch(words, storage, |folder, home| xfstests::run(suite, folder, home, &words.names));
    }
    let of_way = if words.way() == Way::Fuse { OF_FUSE } else { &[] };
    let all: Vec<_> = PROGRAMS.iter().chain(of_way).collect();
    if let Some(unknown) = words.names.iter().find(|name| all.iter().all(|program| program.name != **name)) {
        bail!(
            "there is no {unknown}; there are {}",
            all.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
        );
    }
    let is_wanted = |program: &&Program| words.names.is_empty() || words.names.iter().any(|name| name == program.name);
    on_scratch(words, storage, |folder, home| {
        let stage = Stage::new(folder, home, words, storage)?;
        let failed = stage.play(&all.into_iter().filter(is_wanted).collect::<Vec<_>>())?;
        ensure!(failed.is_empty(), "wrong on the mount: {}", failed.join(", "));
        Ok(())
    })
}

/// Calls `run` with the folder of the programs and an empty folder. Builds the programs if the caller has none. The
/// files of a failed run stay.
fn on_scratch(words: &words::Mounted, files: Storage, run: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
    let folder = match &words.built {
        Some(folder) => folder.canonicalize().with_context(|| folder.display().to_string())?,
        None => build(words.profile.as_deref().unwrap_or("demo"), files)?,
    };
    let scratch = Scratch::new(words.dir.as_deref().unwrap_or(&repository::target()), "mounted")?;
    // Programs act as other users below it.
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o711))?;
    let outcome = run(&folder, scratch.path());
    if words.keep || outcome.is_err() {
        println!("kept: {}", scratch.keep().display());
    }
    outcome
}

/// Builds the programs. Those of a directory come from the command of the race, so that one build serves both.
fn build(profile: &str, files: Storage) -> Result<PathBuf> {
    match files {
        Storage::Directory => repository::build(profile, &[WITH_BRIDGE, &DISK].concat()),
        Storage::FileStore => repository::build(profile, &WITH_STORES),
        Storage::Radosgw(_) => {
            ci::install_ceph()?;
            repository::build(profile, &WITH_STORES)
        }
    }
}

/// The files of a run, and the programs that make its mount.
struct Stage<'a> {
    words: &'a words::Mounted,
    files: Storage,
    built: Built,
    home: PathBuf,
    volume: Volume,
    gateway: Option<Gateway>,
}

impl<'a> Stage<'a> {
    fn new(folder: &Path, home: &Path, words: &'a words::Mounted, files: Storage) -> Result<Self> {
        let data = home.join("data");
        fs::create_dir(&data).context("making folders")?;
        let (volume, gateway) = match files {
            Storage::Directory => (Volume::directory(&data), None),
            Storage::FileStore => (Volume::file_store(&data), None),
            Storage::Radosgw(_) => {
                let (gateway, bucket) = Gateway::start(&folder.join("afflux-gateway"))?;
                (Volume::in_bucket(bucket), Some(gateway))
            }
        };
        let built = Built::of(folder);
        Ok(Self { words, files, built, home: home.to_path_buf(), volume, gateway })
    }

    fn mount(&self, way: Way) -> Result<Mount> {
        Mount::start(&self.built, &self.home, way, &self.volume)
    }

    /// Runs the programs. Returns the names of those with a wrong result.
    fn play(mut self, programs: &[&Program]) -> Result<Vec<&'static str>> {
        let mut mount = self.mount(self.words.way())?;
        let kills = match (self.files, self.gateway.take()) {
            (Storage::Radosgw(Some(every)), Some(gateway)) => Some(Kills::start(gateway, every)),
            (_, gateway) => {
                self.gateway = gateway;
                None
            }
        };
        let (messages, mut failed) = (Messages::now()?, Vec::new());
        for program in programs {
            if !ci::on_path(program.needs) {
                println!("left out {}: {} is not installed", program.name, program.needs);
                continue;
            }
            let right = || match program.script {
                "" => memory::holds(&self.built, &self.home.join(program.name), self.words.lasts()),
                _ => self.outlives_a_kill(program, &mount, kills.as_ref()),
            };
            if !timed(program.name, kills.as_ref(), right)? {
                failed.push(program.name);
            }
            mount.check_running()?;
        }
        if self.files == Storage::Directory {
            if !timed("kernel and memory", None, || is_healthy(&messages, &mount))? {
                failed.push("kernel and memory");
            }
            mount.end()?;
            return Ok(failed);
        }
        let before = Listing::of(&mount.files())?;
        if let Some(kills) = kills {
            self.gateway = Some(kills.end()?);
        }
        mount.end()?;
        if !timed("all files from a new server", None, || self.is_there_again(&before))? {
            failed.push("files");
        }
        if !timed("afflux check", None, || Ok(self.volume.command(&self.built.afflux, "check").status()?.success()))? {
            failed.push("check");
        }
        Ok(failed)
    }

    /// Compares all files with those of a new server, whose memory is empty.
    fn is_there_again(&self, before: &Listing) -> Result<bool> {
        let mount = self.mount(Way::Bridge)?;
        let difference = before.difference(&Listing::of(&mount.files())?);
        match &difference {
            Some(difference) => println!("         {difference}"),
            None => println!("         {} lines are equal", before.lines()),
        }
        mount.end()?;
        Ok(difference.is_none())
    }

    /// Runs a program, again and again until the gateway was killed meanwhile. Returns whether each result was right.
    fn outlives_a_kill(&self, program: &Program, mount: &Mount, kills: Option<&Kills>) -> Result<bool> {
        let before = kills.map(Kills::count);
        for round in 1.. {
            if !mount.runs(program, round, self.words, self.files)? {
                return Ok(false);
            }
            if kills.is_none_or(|kills| Some(kills.count()) != before) {
                break;
            }
        }
        Ok(true)
    }
}

/// Whether the kernel has complained since then, or the server has had too much memory.
fn is_healthy(messages: &Messages, mount: &Mount) -> Result<bool> {
    let complaints = messages.complaints_since()?;
    complaints.iter().for_each(|line| println!("         {line}"));
    match health::check_memory(mount.process(), CACHE_BYTES) {
        Ok(peak) => println!("         the server had at most {} MiB of memory", peak >> 20),
        Err(error) => {
            println!("         {error}");
            return Ok(false);
        }
    }
    Ok(complaints.is_empty())
}

/// Says the verdict of a part, its time, and the kills meanwhile.
fn timed(name: &str, kills: Option<&Kills>, part: impl FnOnce() -> Result<bool>) -> Result<bool> {
    let killed = || kills.map_or(0, Kills::count);
    let (begin, before) = (Instant::now(), killed());
    let right = part()?;
    let seconds = begin.elapsed().as_secs_f64();
    let kills = kills.map(|_| format!(", the gateway killed {} times", killed() - before)).unwrap_or_default();
    println!("{} {name} ({seconds:.1} s{kills})", if right { "right   " } else { "WRONG   " });
    Ok(right)
}
