//! The two figures that have goals: a stream over NFS, and random page operations.
//!
//! Both run a machine like `afflux-lab simulate`'s, with virtual CPUs, a table of costs, and frames that store stamps
//! only.

use std::sync::{Arc, Mutex};

use afflux_engine::Platform;
use afflux_figures::median_and_range;
use afflux_nfs::{AdmittedPeers, Server};
use afflux_reference::StampModel;
use afflux_simulator::{
    CpuOptions, Disk, DiskOptions, Link, LinkOptions, Memory, MemoryTree, Setup, SimMachine, TreeOptions, World,
    WorldOptions,
};
use afflux_workloads::nfs_client::{NfsClient, NfsClientOptions, NfsEntry};

use crate::rig::{Rig, Took, took};

/// Rounds of each figure: the middle one is the figure, the best and the worst are its spread.
const ROUNDS: usize = 9;
/// Virtual seconds per real second to reach.
const STREAM_GOAL: f64 = 1000.0;
/// Page operations per real second to reach.
const PAGES_GOAL: f64 = 2e6;

fn report(label: &str, unit: &str, scale: f64, goal: f64, rounds: &[(Took, f64)]) {
    for (clock, time) in [("CPU", (|took: &Took| took.cpu_ns) as fn(&Took) -> f64), ("wall", |took| took.wall_ns)] {
        let rates = rounds.iter().map(|(took, amount)| amount * 1e9 / time(took) / scale);
        let [middle, least, most] = median_and_range(rates).unwrap();
        let goal = goal / scale;
        println!("{label:<44} {clock:<4} {middle:>8.2} ({least:.2} to {most:.2}) {unit}, goal {goal}");
    }
}

/// A 1 GB file written and committed through the NFS server, over a link of 100 Mbit/s, to a disk of 25 MB/s. If
/// `checked`, every page of the disk is checked.
pub(crate) fn stream(options: WorldOptions, file_bytes: u64, checked: bool) -> f64 {
    let world = World::new(options);
    let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 25_000_000, ..DiskOptions::default() });
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = Setup::default();
    setup.settings.add(&afflux_nfs::KNOBS);
    let mut machine = SimMachine::new(&world, Memory::Stamped(1 << 30), setup).unwrap();
    let volume = machine.add_tree("disk", &tree).unwrap();
    let link = Link::new(&world, 0, LinkOptions::default());
    let entry = NfsEntry::new(world.platform(), link, Server::new(volume, AdmittedPeers::AnyPeer));
    let model = Arc::new(Mutex::new(StampModel::new(1, 0)));
    let options = NfsClientOptions { file_bytes, ..NfsClientOptions::default() };
    let client = NfsClient::new(world.platform(), &entry, options, Arc::clone(&model));
    let outcome = world.run(client.run()).unwrap().unwrap();
    if checked {
        let file = tree.file_at(&["file"]).unwrap();
        let mut model = model.lock().unwrap();
        for offset in (0..outcome.bytes).step_by(1 << 20) {
            let (look, len) = (model.begin_read(), (outcome.bytes - offset).min(1 << 20));
            let bytes = disk.live_bytes(file, offset, len as usize);
            model.end_read(look, offset, len, &bytes).unwrap();
        }
    }
    world.platform().now().0 as f64 / 1e9
}

/// Prints both figures with their spread.
pub(crate) fn goals(quick: bool) {
    let (file_bytes, operations) = if quick { (100_000_000, 100_000) } else { (1_000_000_000, 2_000_000) };
    let machine = |cpus| WorldOptions::machine(1, CpuOptions::count(cpus));
    for (label, checked) in [("NFS stream, virtual seconds", false), ("NFS stream, every page checked", true)] {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| took(|| stream(machine(2), file_bytes, checked))).collect();
        report(label, "a second", 1.0, STREAM_GOAL, &rounds);
    }
    // Name, pages of the file in a cache of 5,120 pages, writes in 1,000.
    let kinds = [
        ("pages, reads, all hits", 4096, 0),
        ("pages, reads, a tenth misses", 5120 * 10 / 9, 0),
        ("pages, reads, half misses", 10_240, 0),
        ("pages, 3 in 10 writes, all in the cache", 4096, 300),
        ("pages, 3 in 10 writes, half misses", 10_240, 300),
    ];
    for (label, file_pages, write_per_mille) in kinds {
        let round = |_| {
            let rig = Rig::new(machine(8), 5120, file_pages, 20_000, 4_000_000_000);
            rig.random_pages(16, operations / 10, write_per_mille);
            let (took, ()) = took(|| rig.random_pages(16, operations, write_per_mille));
            (took, operations as f64)
        };
        let rounds: Vec<_> = (0..ROUNDS).map(round).collect();
        report(label, "million a second", 1e6, PAGES_GOAL, &rounds);
    }
}
