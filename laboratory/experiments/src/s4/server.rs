//! The simulated server of s4, and a client that copies files to it over a link. The server is the real NFS machine,
//! volume and engine, over a model of the seed's USB disk.
//!
//! The server has only as much memory as may become dirty, so that the kernel's 20 and 10 percent of it are the seed
//! board's figures. The client's page cache gathers its program's data into WRITEs of one size. So the size of a record
//! does not show on the wire, except with `--write-size record`.
//!
//! Owns: putting the parts together, looking at the cache over virtual time, the check that a copy is on the disk.
//! Does not own: the list of copies, and the rows (`simulated`).
//! Invariants: the same plan, variant and seed give the same figures and trace.

use std::sync::{Arc, Mutex};

use afflux_engine::counters::{COUNTER_COUNT, Counter};
use afflux_engine::settings::Knob;
use afflux_engine::{DeviceId, Engine, Nanos, Platform};
use afflux_nfs::{AdmittedPeers, Server};
use afflux_reference::StampModel;
use afflux_simulator::{
    Disk, DiskFigures, Link, Memory, MemoryTree, OWN_POLICY, Setup, SimMachine, SimPlatform, TreeOptions, World,
    WorldOptions, catalogue,
};
use afflux_workloads::nfs_client::{NfsClient, NfsClientOptions, NfsClientOutcome, NfsEntry};
use futures_util::future::join_all;
use serde_json::Value;

use super::plan::{Law, Plan, Threshold, disk_of};
use crate::delays::delays;
use crate::experiment::LabError;
use crate::machine::lock;

/// Time between two looks at the cache.
const LOOK_NS: u64 = 50 * Nanos::MILLISECOND;
/// The check of a copy on the disk reads one MiB of this many.
const CHECKED_MIB_IN: usize = 16;
/// A write to an innocent disk, and the time that it has before the first copy.
const BESIDE_BYTES: u64 = 64 << 10;
const PAST_NS: u64 = 40 * Nanos::SECOND;
/// Most looks: five hours of virtual time.
const LOOKS_MAX: usize = 400_000;

/// The state of the cache at an instant, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    pub(super) at_ns: u64,
    /// Bytes in flight included.
    pub(super) dirty_bytes: u64,
    pub(super) writeback_bytes: u64,
    /// Dirty bytes of the innocent disk.
    pub(super) beside_bytes: u64,
}

/// One file copied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Copy {
    pub(super) client: NfsClientOutcome,
    /// The engine's counters over this copy.
    pub(super) counters: [u64; COUNTER_COUNT],
    /// The waits of callers since the server began.
    pub(super) delays: Value,
    /// Bytes that crossed the link towards the server, headers included, and disk time.
    pub(super) link_bytes: u64,
    pub(super) disk_busy_ns: u64,
    pub(super) disk_commands: u64,
    /// The state of the cache during the copy.
    pub(super) looks: Vec<Look>,
    /// The innocent disk's writes during the copy, if there is one: bytes, requests, and its mean dirty bytes.
    pub(super) beside: Option<[u64; 3]>,
}

/// A server with its client.
pub(super) struct ServerMachine {
    world: World,
    disk: Arc<Disk>,
    tree: Arc<MemoryTree>,
    engine: Arc<Engine<SimPlatform>>,
    devices: Vec<DeviceId>,
    entry: Arc<NfsEntry>,
    looks: Arc<Mutex<Vec<Look>>>,
    beside: Option<Arc<Disk>>,
}

impl ServerMachine {
    pub(super) fn new(plan: &Plan, law: Law, threshold: Threshold, seed: u64) -> Result<Self, LabError> {
        let world = World::new(WorldOptions { steps_max: 1 << 40, ..WorldOptions::seed(seed) });
        let disk = catalogue::make(&world, 0, &plan.disk()?);
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let policy = match law {
            Law::Linux => "linux-3.6",
            Law::LinuxByCompletions => "linux-3.6-completions",
            Law::Afflux => OWN_POLICY,
        };
        let mut setup = Setup::of(policy).map_err(LabError::failed)?;
        setup.settings.add(&afflux_nfs::KNOBS);
        let knobs = threshold.knobs();
        // A threshold in time is a device's own; others are the machine's.
        let own = plan.beside.is_some() && matches!(threshold, Threshold::Centisecs(_));
        for (knob, value) in knobs.iter().filter(|_| !own) {
            setup.settings.set_text(&format!("{knob}={value}")).map_err(LabError::failed)?;
        }
        let memory = Memory::Stamped(plan.memory_bytes);
        let mut parts = SimMachine::new(&world, memory, setup).map_err(LabError::failed)?;
        let volume = parts.add_tree("disk", &tree).map_err(LabError::failed)?;
        if own {
            let set = parts.engine.set_device_knob(parts.devices[0], Knob::BackgroundCentisecs, threshold.centisecs());
            set.map_err(LabError::failed)?;
        }
        let beside = plan.beside.map(|rate| innocent(&world, &mut parts, rate)).transpose()?;
        let (engine, devices) = (parts.engine, parts.devices);
        let link = Link::new(&world, 0, plan.link.clone());
        let entry = NfsEntry::new(world.platform(), link, Server::new(volume, AdmittedPeers::AnyPeer));
        let machine = Self { world, disk, tree, engine, devices, entry, looks: Arc::default(), beside };
        machine.watch();
        if machine.beside.is_some() {
            machine.world.run(machine.world.platform().sleep_until(Nanos(PAST_NS))).map_err(LabError::failed)?;
        }
        Ok(machine)
    }

    /// Looks at the cache for as long as the world runs.
    fn watch(&self) {
        let (platform, engine) = (Arc::clone(self.world.platform()), Arc::clone(&self.engine));
        let looks = Arc::clone(&self.looks);
        self.world.spawn("watch", async move {
            for _ in 0..LOOKS_MAX {
                let now = platform.now();
                let devices = engine.status().devices;
                let of = |at: usize| devices.get(at).map_or((0, 0), |it| (it.dirty_bytes, it.writeback_bytes));
                let ((dirty_bytes, writeback_bytes), (beside_bytes, _)) = (of(0), of(1));
                lock(&looks).push(Look { at_ns: now.0, dirty_bytes, writeback_bytes, beside_bytes });
                platform.sleep_until(now.after(LOOK_NS)).await;
            }
        });
    }

    fn counters(&self) -> [u64; COUNTER_COUNT] {
        self.world.platform().counters().sum()
    }

    /// Makes the client copy a file of the plan's size until its last COMMIT is answered, and checks that the file is
    /// on the disk.
    pub(super) fn copy(&self, plan: &Plan, name: &str, write_bytes: u32) -> Result<Copy, LabError> {
        let options = |name: &str| NfsClientOptions {
            name: name.to_owned(),
            file_bytes: plan.file_bytes_each(),
            record_bytes: write_bytes,
            dirty_limit_bytes: plan.window_bytes,
            ..NfsClientOptions::default()
        };
        let names: Vec<String> = match plan.clients {
            1 => vec![name.to_owned()],
            clients => (0..clients).map(|client| format!("{name}.{client}")).collect(),
        };
        let models: Vec<_> = names.iter().map(|_| Arc::new(Mutex::new(StampModel::new(1, 0)))).collect();
        let before = (self.counters(), self.disk.figures(), self.entry.link().figures().0.bytes);
        let beside_now = || self.beside.as_ref().map(|disk| disk.figures());
        let beside_before = beside_now();
        lock(&self.looks).clear();
        let clients = names.iter().zip(&models).map(|(name, model)| {
            NfsClient::new(self.world.platform(), &self.entry, options(name), Arc::clone(model)).run()
        });
        let clients = self.world.run(join_all(clients)).map_err(LabError::failed)?;
        let client = together(clients.into_iter().collect::<Result<_, _>>().map_err(LabError::failed)?);
        let looks = std::mem::take(&mut *lock(&self.looks));
        for (name, model) in names.iter().zip(&models) {
            self.check_disk(plan, name, model)?;
        }
        let (after, disk) = (self.counters(), self.disk.figures());
        let commands = |figures: &DiskFigures| figures.commands;
        Ok(Copy {
            client,
            counters: std::array::from_fn(|at| after[at] - before.0[at]),
            delays: delays(&self.engine, &self.devices),
            link_bytes: self.entry.link().figures().0.bytes - before.2,
            disk_busy_ns: disk.busy_ns - before.1.busy_ns,
            disk_commands: commands(&disk) - commands(&before.1),
            beside: beside_now().zip(beside_before).map(|(after, before)| {
                let dirty = looks.iter().map(|look| look.beside_bytes).sum::<u64>() / looks.len().max(1) as u64;
                [after.bytes.1 - before.bytes.1, after.requests.1 - before.requests.1, dirty]
            }),
            looks,
        })
    }

    /// Checks the committed file on the disk: its length, and the pages of one MiB in [`CHECKED_MIB_IN`].
    fn check_disk(&self, plan: &Plan, name: &str, model: &Mutex<StampModel>) -> Result<(), LabError> {
        let file =
            self.tree.file_at(&[name]).ok_or_else(|| LabError::failed(format!("{name}: the file is not there")))?;
        let durable = self.disk.durable_size(file);
        let bytes = plan.file_bytes_each();
        if durable != bytes {
            return Err(LabError::failed(format!("{name}: of {bytes} bytes {durable} are durable")));
        }
        let model = lock(model);
        for offset in (0..bytes).step_by(CHECKED_MIB_IN << 20) {
            let bytes = (bytes - offset).min(1 << 20) as usize;
            model
                .check_crashed(offset, &self.disk.durable_bytes(file, offset, bytes))
                .map_err(|it| LabError::failed(it.what))?;
        }
        Ok(())
    }

    /// A hash of all events.
    #[cfg(test)]
    pub(super) fn trace_hash(&self) -> u64 {
        self.world.trace_hash()
    }
}

/// An innocent disk: a program of the server writes to it at half of its rate, as long as the world runs.
fn innocent(world: &World, parts: &mut SimMachine, rate: u64) -> Result<Arc<Disk>, LabError> {
    let disk = catalogue::make(world, 1, &disk_of(rate).map_err(LabError::Failed)?);
    let device = parts.add("beside", Arc::clone(&disk));
    let file = parts.engine.open(device, disk.backing(disk.create_file()), 0);
    let (engine, platform) = (Arc::clone(&parts.engine), Arc::clone(world.platform()));
    world.spawn("beside", async move {
        let (block, mut at) = (vec![0; BESIDE_BYTES as usize], 0);
        while engine.write(&file, at, &block).await.is_ok() {
            at += BESIDE_BYTES;
            platform.sleep_until(Nanos(at * 2 * Nanos::SECOND / rate)).await;
        }
    });
    Ok(disk)
}

/// Adds up the outcomes of clients that began at once, as if they were one client.
fn together(outcomes: Vec<NfsClientOutcome>) -> NfsClientOutcome {
    let mut outcomes = outcomes.into_iter();
    let mut sum = outcomes.next().unwrap_or_default();
    for one in outcomes {
        sum.bytes += one.bytes;
        sum.elapsed_ns = sum.elapsed_ns.max(one.elapsed_ns);
        sum.commit_waits_ns.extend(one.commit_waits_ns);
        sum.commits_at_ns.extend(one.commits_at_ns);
        sum.writes += one.writes;
        sum.write_ns_max = sum.write_ns_max.max(one.write_ns_max);
        sum.write_ns_sum += one.write_ns_sum;
        sum.resent_bytes += one.resent_bytes;
        sum.connections_lost += one.connections_lost;
    }
    sum.commits_at_ns.sort_unstable();
    sum
}

impl Copy {
    pub(super) fn rate_mb_per_s(&self) -> f64 {
        self.client.bytes as f64 * 1e3 / self.client.elapsed_ns.max(1) as f64
    }

    /// The mean wait for a COMMIT, in milliseconds.
    pub(super) fn commit_wait_ms(&self) -> f64 {
        let waits = &self.client.commit_waits_ns;
        waits.iter().sum::<u64>() as f64 / 1e6 / waits.len().max(1) as f64
    }

    pub(super) fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// For each of the client's windows, the dirty bytes at the look that first saw the server write.
    pub(super) fn first_writes_bytes(&self) -> Vec<u64> {
        let ends = &self.client.commits_at_ns;
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let first = |(begin_ns, end_ns): (u64, &u64)| {
            let during = self.looks.iter().filter(|look| (begin_ns..*end_ns).contains(&look.at_ns));
            during.clone().find(|look| look.writeback_bytes > 0).map(|look| look.dirty_bytes)
        };
        begins.zip(ends).filter_map(first).collect()
    }
}
