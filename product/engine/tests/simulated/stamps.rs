//! Frames, disks and files that store stamps: parallel random jobs, crashes, and the checks that are always on.

use std::sync::{Arc, Mutex};

use afflux_engine::{Device, Engine, File, Nanos, Platform};
use afflux_reference::{Conservation, Ending, PageStamp, StampModel};
use afflux_simulator::{
    Disk, DiskFileId, DiskOptions, Memory, Random, Setup, SimMachine, SimPlatform, World, WorldOptions,
};

const PAGE: u64 = 4096;
const FILE_PAGES: u64 = 600;
const TASKS: u64 = 4;

struct StampsFixture {
    world: World,
    engine: Arc<Engine<SimPlatform>>,
    disk: Arc<Disk>,
    id: DiskFileId,
    file: File,
    model: Arc<Mutex<StampModel>>,
}

impl StampsFixture {
    fn new(seed: u64, stamped: bool) -> Self {
        let world = World::new(WorldOptions::seed(seed));
        let disk = Disk::new(&world, 0, DiskOptions { inline_per_mille: 20, ..DiskOptions::default() });
        let bytes = 256 * PAGE;
        let memory = if stamped { Memory::Stamped(bytes) } else { Memory::Whole(bytes) };
        let setup = Setup::default().with_knobs(&["dirty_expire_centisecs=10"]).unwrap();
        let mut machine = SimMachine::new(&world, memory, setup).unwrap();
        let device = machine.add("disk", Arc::clone(&disk));
        let engine = machine.engine;
        let id = disk.create_file();
        let file = engine.open(device, disk.backing(id), 0);
        let model = Arc::new(Mutex::new(StampModel::new(1, 0)));
        Self { world, engine, disk, id, file, model }
    }

    /// Starts tasks that write, read and sync at random offsets.
    fn start(&self, seed: u64, steps: u64) -> Arc<Mutex<u64>> {
        let left = Arc::new(Mutex::new(TASKS));
        for task in 0..TASKS {
            let (engine, file, model) = (Arc::clone(&self.engine), self.file.clone(), Arc::clone(&self.model));
            let (left, mut random) = (Arc::clone(&left), Random::new(seed).fork(task));
            self.world.spawn("job", async move {
                for _ in 0..steps {
                    step(&engine, &file, &model, &mut random).await;
                }
                *left.lock().unwrap() -= 1;
            });
        }
        left
    }

    /// Runs until the jobs are done, and checks conservation throughout.
    fn finish(&self, left: &Mutex<u64>) {
        let platform = Arc::clone(self.world.platform());
        while *left.lock().unwrap() > 0 {
            let until = platform.now().after(Nanos::MILLISECOND);
            self.world.run(platform.sleep_until(until)).unwrap_or_else(|error| panic!("{error}"));
            Conservation::default().check(&self.engine).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        }
    }
}

async fn step(engine: &Arc<Engine<SimPlatform>>, file: &File, model: &Mutex<StampModel>, random: &mut Random) {
    // Sectors, pages and streams: some writes touch no stamp at all.
    let unit = random.pick(&[512, PAGE, PAGE]);
    let offset = random.below(FILE_PAGES * PAGE / unit) * unit;
    let len = random.pick(&[unit, 4 * unit, 40 * unit]).min(FILE_PAGES * PAGE - offset);
    match random.below(10) {
        0..=4 => {
            let write = model.lock().unwrap().begin_write(offset, len);
            let mut bytes = vec![0; len as usize];
            write.stamp(0, &mut bytes);
            engine.write(file, offset, &bytes).await.unwrap();
            model.lock().unwrap().end_write(write, Ending::Done);
        }
        5..=8 => {
            let look = model.lock().unwrap().begin_read();
            let mut bytes = vec![0xa5; len as usize];
            let count = engine.read(file, offset, &mut bytes).await.unwrap();
            let checked = model.lock().unwrap().end_read(look, offset, len, &bytes[..count]);
            checked.unwrap_or_else(|mismatch| panic!("{mismatch}"));
        }
        _ => {
            let look = model.lock().unwrap().begin_sync();
            engine.sync(file, offset..offset + len).await.unwrap();
            model.lock().unwrap().end_sync(look, offset, len);
        }
    }
}

#[test]
fn jobs_beside_each_other_read_what_they_may_and_nothing_goes_missing() {
    for seed in 0..30 {
        let lab = StampsFixture::new(seed, seed % 4 != 0);
        let left = lab.start(seed, 60);
        lab.finish(&left);
        let device = lab.file.device();
        assert!(lab.world.run(lab.engine.drain(device)).unwrap().is_empty());
        Conservation::default().check_at_rest(&lab.engine).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        let size = lab.disk.size(lab.id);
        let bytes = lab.disk.durable_bytes(lab.id, 0, size as usize);
        let mut model = lab.model.lock().unwrap();
        let look = model.begin_read();
        model.end_read(look, 0, size, &bytes).unwrap_or_else(|mismatch| panic!("seed {seed}: {mismatch}"));
    }
}

#[test]
fn after_a_power_loss_pages_are_as_synced_or_newer() {
    let mut torn = 0;
    for seed in 0..40 {
        let lab = StampsFixture::new(seed, true);
        lab.start(seed, 1_000);
        let until = Nanos((1 + seed) * 3 * Nanos::MILLISECOND);
        lab.world.run(lab.world.platform().sleep_until(until)).unwrap_or_else(|error| panic!("{error}"));
        lab.disk.crash();
        let size = lab.disk.size(lab.id);
        let bytes = lab.disk.live_bytes(lab.id, 0, size as usize);
        let model = lab.model.lock().unwrap();
        model.check_crashed(0, &bytes).unwrap_or_else(|mismatch| panic!("seed {seed}: {mismatch}"));
        torn += u64::from(
            bytes.chunks(PAGE as usize).any(|page| PageStamp::from_bytes(*page.first_chunk().unwrap()).is_none()),
        );
    }
    assert!(torn > 0, "some power losses leave holes");
}

#[test]
fn what_a_stamped_cache_does_not_keep_reads_as_zeros() {
    let lab = StampsFixture::new(1, true);
    let (engine, file) = (&lab.engine, &lab.file);
    lab.world
        .run(async {
            engine.write(file, 0, &[7; 10_000]).await.unwrap();
            let mut right = vec![0; 10_000];
            [0, 4096, 8192].into_iter().for_each(|at| right[at..at + 16].fill(7));
            let mut bytes = vec![1; 10_000];
            assert_eq!(engine.read(file, 0, &mut bytes).await.unwrap(), 10_000);
            assert!(bytes == right);
            // Overwrites in place at the end of the stored part, and reads without a copy.
            engine.write(file, 4096 + 8, &[9; 100]).await.unwrap();
            right[4104..4112].fill(9);
            engine.sync(file, 0..u64::MAX).await.unwrap();
            let pinned = engine.read_pinned(file, 100, 9_000).await.unwrap().unwrap();
            let slices: Vec<u8> = pinned.slices().flatten().copied().collect();
            assert!(slices == right[100..9_100]);
            for (range, slice) in [(4096..4112, Some(&right[4096..4112])), (4100..4113, None), (4095..4097, None)] {
                let (offset, len) = (range.start as u64, range.len());
                let pinned = engine.read_pinned(file, offset, len).await.unwrap().unwrap();
                assert_eq!(pinned.as_slice(), slice, "{range:?}");
            }
        })
        .unwrap();
    assert_eq!(lab.disk.backed_bytes(lab.id, 0, 10_000).len(), 48);
    assert!(lab.disk.live_bytes(lab.id, 4096, 32) == [[7; 8], [9; 8], [0; 8], [0; 8]].concat());
}

#[test]
#[should_panic(expected = "it keeps 16 bytes a page, the disk 4096")]
fn a_disk_of_whole_pages_does_not_take_stamps() {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let engine = SimMachine::new(&world, Memory::Stamped(256 * PAGE), Setup::default()).unwrap().engine;
    let device = engine.add_device("disk", Arc::clone(&disk) as Arc<dyn Device>);
    let file = engine.open(device, disk.backing(disk.create_file()), 0);
    let ran = world.run(async {
        engine.write(&file, 0, &[1; 4096]).await.unwrap();
        let _ = engine.sync(&file, 0..u64::MAX).await;
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}
