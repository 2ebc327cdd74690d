//! Writes through the engine, in this process: its cache and its policies over files of the host.
//!
//! Owns: the reactors, the engine, a device for each directory.
//! Does not own: the policies, which the simulator's setup names.
//! Invariants: the memory of the cache is touched before anything is written; each contender has an engine of its own,
//! which knows nothing of the disks yet.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::{Backing, DeviceId, Engine, File};
use afflux_frames::{Frames, HUGE_FRAMES};
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_simulator::{OWN_POLICY, Setup};
use serde_json::Value;

use super::{Contender, Sink, create_file, said};
use crate::delays::delays;

/// Threads that submit and complete.
const REACTORS: usize = 2;

/// The parameters of an engine.
#[derive(Clone, Debug)]
pub(crate) struct EngineSetup {
    /// A policy's name, or empty for the engine's default.
    pub(crate) policy: String,
    pub(crate) knobs: Vec<String>,
    pub(crate) memory_bytes: u64,
}

impl EngineSetup {
    fn setup(&self) -> Result<Setup, String> {
        let policy = if self.policy.is_empty() { OWN_POLICY } else { &self.policy };
        let setup = Setup::of(policy).map_err(|error| error.to_string())?;
        setup.with_knobs(&self.knobs).map_err(|error| error.to_string())
    }

    /// Reports a wrong policy name or knob.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.setup().map(drop)
    }

    /// The name in rows and tables.
    pub(crate) fn name(&self) -> String {
        match self.policy.as_str() {
            "" | OWN_POLICY => "afflux".to_owned(),
            policy => format!("afflux, {policy}"),
        }
    }
}

/// An engine over some directories.
pub(crate) struct Ours {
    // Dropped in this order: the engine goes before the threads that it runs on.
    pub(crate) engine: Arc<Engine<LinuxPlatform>>,
    directories: Vec<(PathBuf, DeviceId)>,
    pub(crate) platform: LinuxPlatform,
    _reactors: Reactors,
}

impl Ours {
    pub(crate) fn new(with: &EngineSetup, directories: &[&Path]) -> Result<Self, String> {
        let Setup { settings, policies, .. } = with.setup()?;
        let reactors = Reactors::start(REACTORS, IoChoice::Auto).map_err(|error| said("the platform", error))?;
        let platform = reactors.platform();
        let frames = Frames::new(with.memory_bytes).map_err(|error| said("memory", error))?;
        let engine = Engine::with_policies(Arc::new(platform.clone()), settings, frames, policies);
        prefault(&engine)?;
        let mut devices = Vec::new();
        for directory in directories {
            let opened = std::fs::File::open(directory).map_err(|error| said(directory.display(), error))?;
            let device = HostDevice::new(&platform, OwnedFd::from(opened), Caching::Auto);
            let device = device.map_err(|error| said(directory.display(), error))?;
            let name = format!("disk{}", devices.len());
            devices.push(((*directory).to_owned(), engine.add_device(&name, device)));
        }
        Ok(Self { engine, directories: devices, platform, _reactors: reactors })
    }

    /// The device of the first directory.
    pub(crate) fn device(&self) -> DeviceId {
        self.directories[0].1
    }
}

fn prefault(engine: &Engine<LinuxPlatform>) -> Result<(), String> {
    let frames = engine.frames();
    for first in (0..frames.total()).step_by(HUGE_FRAMES as usize) {
        let some = first..first.saturating_add(HUGE_FRAMES);
        frames.arena().prefault(some).map_err(|error| said("memory of the cache", error))?;
    }
    Ok(())
}

impl Contender for Ours {
    fn create(&self, directory: usize, name: &str) -> Result<Arc<dyn Sink>, String> {
        let (path, device) = &self.directories[directory];
        let host = create_file(path, name, 0)?;
        let file = self.engine.open(*device, Backing::new(Arc::new(HostFile::new(host.into()))), 0);
        Ok(Arc::new(OurFile { engine: Arc::clone(&self.engine), platform: self.platform.clone(), file }))
    }

    fn dirty_bytes(&self, directory: usize) -> u64 {
        let device = self.directories[directory].1;
        let status = self.engine.status();
        status.devices.iter().find(|it| it.id == device).map_or(0, |device| device.dirty_bytes)
    }

    fn delays(&self) -> Option<Value> {
        let devices: Vec<DeviceId> = self.directories.iter().map(|(_, device)| *device).collect();
        Some(delays(&self.engine, &devices))
    }
}

struct OurFile {
    engine: Arc<Engine<LinuxPlatform>>,
    platform: LinuxPlatform,
    file: File,
}

impl Sink for OurFile {
    fn write(&self, offset: u64, block: &[u8]) -> Result<(), String> {
        if self.engine.try_write(&self.file, offset, block).is_some() {
            return Ok(());
        }
        let written = self.platform.block_on(self.engine.write(&self.file, offset, block));
        written.map_err(|error| said("a write", error))
    }

    fn sync(&self) -> Result<(), String> {
        self.platform.block_on(self.engine.sync(&self.file, 0..u64::MAX)).map_err(|error| said("a sync", error))
    }

    fn cut(&self) -> Result<(), String> {
        self.platform.block_on(self.engine.set_size(&self.file, 0)).map_err(|error| said("a truncation", error))
    }
}
