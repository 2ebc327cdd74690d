//! The page caches of the old kernels against figures derived by hand, at parameters that no thread mentions.

#![allow(clippy::unwrap_used, reason = "a test crate, also outside its test functions")]

use std::sync::Arc;

use afflux_engine::{Device, Nanos, Platform};
use afflux_kernels::{Kernel, MachineOptions, PAGE_BYTES, QueueOptions, SuperBlock, Sysctl, Task, release};
use afflux_simulator::{CostTable, CpuOptions, Disk, DiskOptions, SimPlatform, World, WorldOptions};

const MIB: u64 = 1 << 20;

/// A machine with equal disks, each with one file system.
struct Rig {
    world: World,
    platform: Arc<SimPlatform>,
    disks: Vec<Arc<Disk>>,
    kernel: Arc<Kernel>,
    supers: Vec<SuperBlock>,
}

#[derive(Clone, Copy)]
struct Shape {
    kernel: &'static str,
    disks: usize,
    bytes_per_second: u64,
    nr_requests: u64,
    memory_mib: u64,
    sysctl: Sysctl,
}

impl Shape {
    fn of(kernel: &'static str) -> Self {
        let sysctl = Sysctl::default();
        Self { kernel, disks: 1, bytes_per_second: 40_000_000, nr_requests: 64, memory_mib: 400, sysctl }
    }
}

impl Rig {
    fn new(shape: Shape) -> Self {
        let cpus = CpuOptions { costs: CostTable::free(), ..CpuOptions::count(3) };
        let world = World::new(WorldOptions::machine(5, cpus));
        let platform = Arc::clone(world.platform());
        let options = DiskOptions {
            latency_ns: 0,
            bytes_per_second: shape.bytes_per_second,
            depth: 1024,
            volatile_cache: false,
            ..DiskOptions::default()
        };
        let disks: Vec<_> = (0..shape.disks as u64).map(|number| Disk::new(&world, number, options.clone())).collect();
        disks.iter().for_each(|disk| disk.keep_stamps());
        let queue = QueueOptions { nr_requests: shape.nr_requests, request_pages: 32, batch: 32 };
        let machine = MachineOptions {
            memory_pages: shape.memory_mib * MIB / PAGE_BYTES,
            cpus: 3,
            sysctl: shape.sysctl,
            dirty_page_ns: 2000,
            write_page_ns: 1000,
            disks: disks.iter().map(|disk| (Arc::clone(disk) as Arc<dyn Device>, queue)).collect(),
        };
        let kernel = Kernel::boot(&platform, release(shape.kernel).unwrap(), machine).unwrap();
        let supers = (0..shape.disks).map(|disk| kernel.mount(disk)).collect();
        Self { world, platform, disks, kernel, supers }
    }

    /// Starts a task that writes so many pages to a new file of a disk, in calls of 16 pages.
    fn writer(&self, disk: usize, pages: u64) {
        let file = self.kernel.create(self.supers[disk], self.disks[disk].backing(self.disks[disk].create_file()));
        let (kernel, platform) = (Arc::clone(&self.kernel), Arc::clone(&self.platform));
        self.world.spawn("writer", async move {
            let mut task = Task::default();
            for at in (0..pages).step_by(16) {
                kernel.write(&mut task, file, at, 16.min(pages - at)).await;
                platform.preemption_point().await;
            }
        });
    }

    fn sleep(&self, ns: u64) {
        self.world.run(self.platform.sleep_until(self.platform.now().after(ns))).unwrap();
    }

    fn written_bytes(&self, disk: usize) -> u64 {
        self.disks[disk].figures().bytes.1
    }
}

/// The pool writes at the disk's rate, whatever it does about congestion: 57 requests of 128 KiB last 0.19 s at 40
/// MB/s.
#[test]
fn a_pool_alone_keeps_a_disk_busy() {
    let sysctl = Sysctl { dirty_ratio: 80, background_ratio: 1, writeback_centisecs: 0, ..Sysctl::default() };
    let rig = Rig::new(Shape { memory_mib: 2000, sysctl, ..Shape::of("linux-2.6.31") });
    (0..3).for_each(|_| rig.writer(0, 100 * MIB / PAGE_BYTES));
    rig.sleep(Nanos::SECOND);
    let before = rig.written_bytes(0);
    rig.sleep(5 * Nanos::SECOND);
    let rate = (rig.written_bytes(0) - before) / 5;
    assert!((39_800_000..=40_200_000).contains(&rate), "{rate}");
    assert_eq!(rig.kernel.figures().written_by_writers, 0);
}

/// Two writers over the limit: each kernel's disk is never idle, and all together they dirty what it writes. The dirty
/// pages stay below the limit of 20 % and above the midpoint of 15 %, less a queue.
#[test]
fn writers_over_the_limit_get_the_rate_of_the_disk() {
    for kernel in ["linux-2.6.31-rc1", "linux-2.6.31", "linux-2.6.32", "s0-seed", "s0-merged"] {
        let rig = Rig::new(Shape::of(kernel));
        (0..2).for_each(|_| rig.writer(0, u64::MAX / PAGE_BYTES / 4));
        rig.sleep(10 * Nanos::SECOND);
        let (before, dirtied) = (rig.written_bytes(0), rig.kernel.figures().dirtied);
        rig.sleep(20 * Nanos::SECOND);
        let rate = (rig.written_bytes(0) - before) / 20;
        assert!((39_500_000..=40_200_000).contains(&rate), "{kernel}: {rate}");
        let dirtied = (rig.kernel.figures().dirtied - dirtied) * PAGE_BYTES / 20;
        assert!((38_000_000..=42_000_000).contains(&dirtied), "{kernel}: {dirtied}");
        let of_memory = |percent| 400 * MIB / PAGE_BYTES * percent / 100;
        let vm = rig.kernel.vmstat();
        assert!((of_memory(12)..=of_memory(21)).contains(&(vm.dirty + vm.writeback)), "{kernel}: {vm:?}");
    }
}

/// One writer's background writeback in 2.6.32 wakes the flusher of its own device alone; the pool of 2.6.31 writes
/// all.
#[test]
fn whose_background_writeback_a_writer_starts() {
    for (kernel, other) in [("linux-2.6.31", true), ("linux-2.6.32", false)] {
        let sysctl = Sysctl { background_ratio: 10, writeback_centisecs: 0, ..Sysctl::default() };
        let rig = Rig::new(Shape { disks: 2, memory_mib: 2000, sysctl, ..Shape::of(kernel) });
        rig.writer(1, 150 * MIB / PAGE_BYTES);
        rig.sleep(Nanos::SECOND);
        assert_eq!(rig.written_bytes(0) + rig.written_bytes(1), 0, "{kernel}: below 10 %");
        rig.writer(0, 150 * MIB / PAGE_BYTES);
        rig.sleep(2 * Nanos::SECOND);
        assert!(rig.written_bytes(0) > 0 && (rig.written_bytes(1) > 0) == other, "{kernel}");
    }
}

/// `sync` of two disks with 60 MiB each at 40 MB/s takes 1.57 s of each. Without its first passes it takes one after
/// the other. 2.6.31's first passes write A in the calling task; the pool writes B beside it.
#[test]
fn a_sync_begins_everywhere_before_it_waits() {
    for kernel in ["linux-2.6.31", "linux-2.6.32"] {
        for (starts_all, seconds) in [(false, 2.0 * 1.573), (true, 1.573)] {
            let sysctl = Sysctl { dirty_ratio: 80, background_ratio: 70, writeback_centisecs: 0, ..Sysctl::default() };
            let rig = Rig::new(Shape { disks: 2, memory_mib: 2000, sysctl, ..Shape::of(kernel) });
            (0..2).for_each(|disk| rig.writer(disk, 60 * MIB / PAGE_BYTES));
            rig.sleep(Nanos::SECOND);
            let (mut task, began) = (Task::default(), rig.platform.now().0);
            let ends = rig.world.run(rig.kernel.sync(&mut task, &rig.supers, starts_all)).unwrap();
            let took = (ends[1] - began) as f64 / 1e9;
            assert!((took / seconds - 1.0).abs() < 0.03, "{kernel}, {starts_all}: {took} s, by hand {seconds}");
            let vm = rig.kernel.vmstat();
            assert_eq!((vm.dirty, vm.writeback), (0, 0), "{kernel}");
        }
    }
}

/// An inode that is older than 3 s is written at the next interval of 2 s: between 3 and 5 s and a bit after it became
/// dirty, and nothing before.
#[test]
fn old_inodes_are_written_at_the_next_interval() {
    for kernel in ["linux-2.6.31", "linux-2.6.32"] {
        let sysctl = Sysctl { expire_centisecs: 300, writeback_centisecs: 200, ..Sysctl::default() };
        let rig = Rig::new(Shape { memory_mib: 2000, sysctl, ..Shape::of(kernel) });
        rig.writer(0, 10 * MIB / PAGE_BYTES);
        rig.sleep(2950 * Nanos::MILLISECOND);
        assert_eq!(rig.written_bytes(0), 0, "{kernel}");
        rig.sleep(2400 * Nanos::MILLISECOND);
        assert_eq!(rig.written_bytes(0), 10 * MIB, "{kernel}");
    }
}

/// In 2.6.31 the periodic job takes over the inodes that background writeback has queued. Background writeback finds
/// the device taken and ends, and nobody goes on when the periodic job is done: it leaves pages above the threshold.
#[test]
fn the_periodic_job_ends_background_writeback() {
    let left = |writeback_centisecs| {
        let sysctl = Sysctl { dirty_ratio: 80, background_ratio: 1, writeback_centisecs, ..Sysctl::default() };
        let rig = Rig::new(Shape { memory_mib: 2000, sysctl, ..Shape::of("linux-2.6.31") });
        (0..8).for_each(|_| rig.writer(0, 37 * MIB / PAGE_BYTES));
        rig.sleep(20 * Nanos::SECOND);
        rig.kernel.vmstat().dirty * PAGE_BYTES / MIB
    };
    assert!(left(0) < 20, "{}", left(0));
    assert!(left(200) > 2 * 20, "{}", left(200));
}

/// Of 64 requests, a queue is congested from 57 on, where pdflush leaves it. The flusher of 2.6.32 goes on: it takes
/// the 64th as the first of a batch of 32, and waits for the 96th with its pages in hand. A disk beside it is written
/// under both.
#[test]
fn a_hung_disk_holds_what_its_queue_takes_and_no_other_disk() {
    for (kernel, requests) in [("linux-2.6.31", 57), ("linux-2.6.32", 96)] {
        let sysctl = Sysctl { expire_centisecs: 100, writeback_centisecs: 100, ..Sysctl::default() };
        let rig = Rig::new(Shape { disks: 2, memory_mib: 2000, sysctl, ..Shape::of(kernel) });
        rig.disks[0].hang();
        rig.writer(0, 100 * MIB / PAGE_BYTES);
        rig.writer(1, 20 * MIB / PAGE_BYTES);
        rig.sleep(6 * Nanos::SECOND);
        assert_eq!(rig.written_bytes(1), 20 * MIB, "{kernel}");
        assert_eq!(rig.kernel.vmstat().writeback, requests * 32, "{kernel}");
    }
}
