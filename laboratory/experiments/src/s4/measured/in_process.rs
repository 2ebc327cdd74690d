//! Our server inside this process, with limiters of our own: the parts of `serve`, a slow device in front of the real
//! one, and a slow way to its port.
//!
//! Owns: the wiring, the order of the stop. Does not own: the parts.
//! Invariants: accepted data are written before the value is gone; the client connects to the relay.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::settings::{Knob, Settings, TableKnob};
use afflux_engine::{Engine, Nanos, Platform};
use afflux_frames::Frames;
use afflux_frontend::Peer;
use afflux_linux::{
    Caching, HostOptions, HostTree, IoChoice, LinuxPlatform, Listener, Reactors, ServeHandle, ServeLimits, WorkerPool,
    connections_max, handle_key, host_device, serve,
};
use afflux_nfs::{Admission, NfsKnob, Server};
use afflux_simulator::{EQUAL_PARTS_POLICY, Setup};
use afflux_volume::{DeviceFactory, DeviceKey, Directory as _, NewDevice, Node, Volume, VolumeError};

use super::servers::Knobs;
use crate::hardware::{LimitedDevice, LimitedRelay};

/// Threads that submit and complete, and threads for calls about names, with their queue.
const REACTORS: usize = 2;
const NAME_THREADS: usize = 4;
const NAME_QUEUE: usize = 64;
/// Most time for calls in progress at the end.
const FINISH_NS: u64 = 2 * Nanos::SECOND;

/// Rates of the limiters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) link_bits_per_s: u64,
    pub(super) disk_bytes_per_s: u64,
}

/// A server in this process.
pub(super) struct InProcessServer {
    // Dropped in this order: first the way from outside, then the threads.
    relay: LimitedRelay,
    handle: ServeHandle,
    engine: Arc<Engine<LinuxPlatform>>,
    _volume: Arc<Volume<LinuxPlatform>>,
    platform: LinuxPlatform,
    _reactors: Reactors,
    export: String,
}

impl InProcessServer {
    pub(super) fn start(directory: &Path, knobs: &Knobs, limits: Limits) -> Result<Self, String> {
        let said = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let reactors = Reactors::start(REACTORS, IoChoice::Auto).map_err(|error| said("the platform", &error))?;
        let platform = reactors.platform();
        let pool = WorkerPool::new("afflux-names", NAME_THREADS, NAME_QUEUE);
        let tree = HostTree::open(&[PathBuf::from(directory)], &pool, &HostOptions::default())
            .map_err(|error| said("the directory", &error))?;
        let export = tree.exports().first().map(|export| export.path.clone()).ok_or("nothing is exported")?;
        let mut settings = Settings::with([&afflux_volume::KNOBS, &afflux_nfs::KNOBS]);
        let knob = |settings: &mut Settings, knob, value| settings.set(knob, value).map_err(|error| error.to_string());
        knob(&mut settings, Knob::BackgroundBytes, knobs.background_bytes())?;
        knob(&mut settings, Knob::BackgroundCentisecs, knobs.centisecs)?;
        let frames = Frames::new(knobs.memory_bytes).map_err(|error| said("memory", &error))?;
        let policies = Setup::of(EQUAL_PARTS_POLICY).map_err(|error| said("the policy", &error))?.policies;
        let engine = Engine::with_policies(Arc::new(platform.clone()), settings, frames, policies);
        let (key, _) = handle_key(None);
        let factory = slow_devices(platform.clone(), limits.disk_bytes_per_s);
        let volume =
            Volume::new(Arc::clone(&engine), tree, key, factory).map_err(|error| said("the volume", &error))?;
        let listener = Listener::tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|error| said("the server's port", &error))?;
        let address = listener.internet_address().ok_or("the server has no port")?;
        let machines = Server::new(Arc::clone(&volume), Admission::AnyPeer);
        let machine = move |peer: Peer| Box::new(machines.connection(peer)) as _;
        let connections = connections_max();
        let most = move || ServeLimits {
            connections_max: connections,
            peer_connections_max: connections,
            idle_ns: 0,
            request_bytes_max: NfsKnob::RequestBytes.info().default,
            unread_ns: 0,
        };
        let handle = serve(&platform, vec![listener], most, |_| {}, machine);
        let relay = LimitedRelay::new(address, limits.link_bits_per_s).map_err(|error| error.to_string())?;
        Ok(Self { relay, handle, engine, _volume: volume, platform, _reactors: reactors, export })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    pub(super) fn export(&self) -> &str {
        &self.export
    }

    pub(super) fn engine(&self) -> &Arc<Engine<LinuxPlatform>> {
        &self.engine
    }
}

impl Drop for InProcessServer {
    fn drop(&mut self) {
        let until = self.platform.now().after(FINISH_NS);
        self.platform.block_on(self.handle.finish(until));
        for device in self.engine.status().devices {
            // A COMMIT has already reported any failure to the client.
            drop(self.platform.block_on(self.engine.drain(device.id)));
        }
    }
}

fn slow_devices(platform: LinuxPlatform, bytes_per_s: u64) -> DeviceFactory {
    Box::new(move |_: DeviceKey, node: &Node| {
        let real = host_device(&platform, node, Caching::Auto)?;
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(rustix::io::Errno::AGAIN.raw_os_error());
        let limited = LimitedDevice::new(real, bytes_per_s);
        let device = limited.map_err(|error| VolumeError::Io { errno: errno(error) })?;
        Ok(NewDevice::unknown("disk".to_owned(), device))
    })
}

/// Checks that `bytes` fit into the directory.
pub(super) fn room_for(bytes: u64, directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let free = crate::hardware::free_bytes(directory).map_err(|error| error.to_string())?;
    if free >= bytes {
        return Ok(());
    }
    let (needed, free) = (afflux_report::units::data(bytes), afflux_report::units::data(free));
    Err(format!("{}: {needed} are needed and {free} are free (TMPDIR chooses another place)", directory.display()))
}
