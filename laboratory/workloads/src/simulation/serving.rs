//! NFS clients of a run: the real server over simulated links, on the run's own engine and disks.
//!
//! Owns: the set of served devices, the servers, a link for each client, the checks of their files.
//! Does not own: the client and its calls (`nfs_client`), the server, links.
//! Invariants: a device is in the engine once, whether jobs, clients or both use it. Each client's file exists, and is
//! empty, before the run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use afflux_nfs::{AdmittedPeers, Server};
use afflux_reference::StampModel;
use afflux_simulator::{Disk, DiskFileId, Link, MemoryTree, SimMachine, SimPlatform, TreeOptions, World};
use afflux_volume::{AttributeChange, Directory, New};
use bytes::Bytes;

use crate::contents::{stamps_after_crash, stamps_lost, stamps_on_disk};
use crate::locking::lock;
use crate::nfs_client::{Answered, NfsClient, NfsClientError, NfsClientOptions, NfsEntry};
use crate::outcome::CallWaits;
use crate::recorder::Recorder;
use crate::simulated::{SimulatedSite, on_no_device};
use crate::workload::{NfsStream, Workload};

/// The models of clients' files have numbers above those of jobs' files.
const FILE_NUMBERS: u32 = 1 << 31;

/// A served device.
pub(super) struct Served {
    tree: Arc<MemoryTree>,
    server: Arc<Server<SimPlatform>>,
}

/// A client of the run.
pub(super) struct Client {
    pub(super) path: String,
    volume: usize,
    disk_file: DiskFileId,
    options: NfsClientOptions,
    model: Arc<Mutex<StampModel>>,
    pub(super) entry: Arc<NfsEntry>,
    pub(super) row: Arc<Mutex<Recorder>>,
    ended: Arc<AtomicBool>,
}

/// The clients among the workloads.
pub(super) fn streams(workloads: &[Workload]) -> impl Iterator<Item = &NfsStream> {
    workloads.iter().filter_map(|workload| match workload {
        Workload::NfsClient(stream) => Some(stream),
        _ => None,
    })
}

/// Adds a server's disk to the machine.
pub(super) fn serve(world: &World, machine: &mut SimMachine, name: &str, disk: &Arc<Disk>) -> Result<Served, String> {
    let tree = MemoryTree::new(world, disk, TreeOptions::default());
    let volume = machine.add_tree(name, &tree).map_err(|error| error.to_string())?;
    Ok(Served { tree, server: Server::new(volume, AdmittedPeers::AnyPeer) })
}

/// Creates the clients, their links and their files.
pub(super) fn clients(
    streams: &[&NfsStream],
    world: &World,
    machine: &SimulatedSite,
    served: &BTreeMap<usize, Served>,
) -> Result<Vec<Client>, String> {
    let mut clients: Vec<Client> = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        let path = stream.path();
        let volume = machine.volume_of(&path).ok_or_else(|| on_no_device(&path))?;
        let served = served.get(&volume).ok_or_else(|| on_no_device(&path))?;
        let name = format!("{}.{number}", stream.name);
        let disk_file = make_file(world, &served.tree, &name)?;
        let link = Link::new(world, number as u64, stream.link.clone());
        let mut row = Recorder::new(&stream.name, machine.volumes[volume].name.clone(), &[]);
        row.clones = 1;
        clients.push(Client {
            path,
            volume,
            disk_file,
            options: NfsClientOptions { name, ..stream.client.clone() },
            model: Arc::new(Mutex::new(StampModel::new(FILE_NUMBERS + number as u32, 0))),
            entry: NfsEntry::new(&machine.platform, link, Arc::clone(&served.server)),
            row: Arc::new(Mutex::new(row)),
            ended: Arc::default(),
        });
    }
    Ok(clients)
}

fn make_file(world: &World, tree: &Arc<MemoryTree>, name: &str) -> Result<DiskFileId, String> {
    let root = tree.exports().first().map(|export| export.root.node.clone()).ok_or("nothing is exported")?;
    let name_bytes = Bytes::copy_from_slice(name.as_bytes());
    let made = world.run(tree.create(&root, name_bytes, New::Regular, AttributeChange::default(), false));
    made.map_err(|error| error.to_string())?.map_err(|error| format!("{name}: {error}"))?;
    tree.file_at(&[name]).ok_or_else(|| format!("{name} is not there"))
}

impl Client {
    /// The client's task, to be spawned.
    pub(super) fn run(&self, machine: &Arc<SimulatedSite>) -> impl Future<Output = ()> + Send + 'static {
        let (row, site, volume) = (Arc::clone(&self.row), Arc::clone(machine), self.volume);
        let file = self.disk_file;
        let witness = move |answered: Answered| {
            let Answered { sent_ns, ended_ns, written } = answered;
            match written {
                Some(bytes) => {
                    lock(&row).moves[1].record(sent_ns, ended_ns, bytes);
                    site.accepted(volume, bytes);
                }
                None => {
                    let syncs = &mut lock(&row).syncs;
                    if syncs.record(sent_ns, ended_ns, 0) {
                        let waited = site.volumes[volume].disk.waited(file, false, sent_ns, ended_ns);
                        syncs.explain(sent_ns, ended_ns, CallWaits::at_disk(waited));
                    }
                }
            }
        };
        let client = NfsClient::new(&machine.platform, &self.entry, self.options.clone(), Arc::clone(&self.model))
            .witnessed(Box::new(witness))
            .stopped_at(machine.stop_ns.load(Ordering::Relaxed));
        let (row, ended) = (Arc::clone(&self.row), Arc::clone(&self.ended));
        async move {
            if let Err(error) = client.run().await {
                lock(&row).error(in_words(&error));
            }
            ended.store(true, Ordering::Relaxed);
        }
    }

    /// Its current wait, unless it has ended.
    pub(super) fn described(&self) -> Option<String> {
        let waits = || format!("{} ({}): waits for the server or the link", lock(&self.row).name, self.path);
        (!self.ended.load(Ordering::Relaxed)).then(waits)
    }

    /// Its file, for faults that name it.
    pub(super) fn file(&self) -> (&str, usize, DiskFileId) {
        (&self.path, self.volume, self.disk_file)
    }

    /// Checks that its disk holds the right bytes.
    pub(super) fn check(&self, machine: &SimulatedSite, crashed: bool) {
        let disk = &machine.volumes[self.volume].disk;
        let mut model = lock(&self.model);
        let checked = match crashed {
            true => stamps_after_crash(&model, disk, self.disk_file),
            false => stamps_on_disk(&mut model, disk, self.disk_file),
        };
        if let Err(mismatch) = checked {
            machine.fail(format!("{}: {mismatch}", self.path));
        }
    }

    /// Bytes that the server accepted and that its disk lacks.
    pub(super) fn lost_bytes(&self, machine: &SimulatedSite) -> u64 {
        stamps_lost(&lock(&self.model), &machine.volumes[self.volume].disk, self.disk_file)
    }
}

/// An error of a client, with the meaning of its number.
fn in_words(error: &NfsClientError) -> String {
    let meaning = match error {
        NfsClientError::Status { status: 5, .. } => " (input/output error)",
        NfsClientError::Status { status: 28, .. } => " (no space left on the device)",
        _ => "",
    };
    format!("{error}{meaning}")
}
