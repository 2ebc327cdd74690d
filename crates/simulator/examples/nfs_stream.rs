//! How fast the simulator is: a 1 GB stream over a 100 Mbit/s link to a disk of 25 MB/s, in virtual
//! seconds a real second, and the same with every page checked at the end.
//!
//! `cargo run --release -p afflux-simulator --example nfs_stream`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program to be run by hand")]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use engine::settings::Settings;
use engine::{Engine, Platform};
use frames::Frames;
use frontend_nfs::Server;
use simulator::workload::nfs_client::{NfsClient, NfsClientOptions, NfsEntry};
use simulator::{Disk, DiskOptions, Link, LinkOptions, MemoryTree, StampModel, TreeOptions, World, WorldOptions};
use volume::{HandleKey, Volume};

fn main() {
    for seed in 0..5 {
        let start = Instant::now();
        let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(seed) });
        let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 25_000_000, ..DiskOptions::default() });
        disk.keep_stamps();
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let frames = Frames::new_stamped(1 << 30).unwrap();
        let engine = Engine::new(Arc::clone(world.platform()), Settings::new(), frames);
        let volume = Volume::new(engine, Arc::clone(&tree) as _, HandleKey::new([7; 16]), tree.devices()).unwrap();
        let link = Link::new(&world, 0, LinkOptions::default());
        let entry = NfsEntry::new(world.platform(), link, Server::new(volume));
        let model = Arc::new(Mutex::new(StampModel::new(1, 0)));
        let client = NfsClient::new(world.platform(), &entry, NfsClientOptions::default(), Arc::clone(&model));
        let outcome = world.run(client.run()).unwrap().unwrap();
        let real = start.elapsed().as_secs_f64();
        let virtual_s = world.platform().now().0 as f64 / 1e9;
        let file = tree.file_at(&["file"]).unwrap();
        let mut model = model.lock().unwrap();
        for offset in (0..outcome.bytes).step_by(1 << 20) {
            let (look, len) = (model.begin_read(), (outcome.bytes - offset).min(1 << 20));
            let bytes = disk.live_bytes(file, offset, len as usize);
            model.end_read(look, offset, len, &bytes).unwrap();
        }
        println!(
            "{:.2} MB/s, {virtual_s:.1} virtual s in {real:.3} s: {:.0} times real time, {} steps",
            outcome.bytes_per_second() as f64 / 1e6,
            virtual_s / real,
            world.steps(),
        );
    }
}
