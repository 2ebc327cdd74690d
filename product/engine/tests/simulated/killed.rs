//! A process is killed before each store of one operation, one after the other; its successor has every accepted byte.

//! rule: 12: a kill before any store of a write, a replacement, a writeback or a change of shape loses nothing accepted
//! kept in: `product/engine/src/recovery/mod.rs`, `product/engine/src/recovery/adopt.rs`

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::{DeviceError, FileKey, Nanos, Platform, Recovered, RescuedFile};
use afflux_frames::{FrameTable, Part};
use afflux_simulator::{
    Disk, DiskFileId, DiskFiles, DiskOptions, Fault, FaultTarget, FaultWhat, Random, Setup, SimMachine, World,
    WorldOptions,
};

use crate::fixture::{EngineFixture, Inside, PAGE, TestFile, bytes};

type ArenaMemory = Arc<afflux_frames::Memory>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Overwrite,
    WriteInPlace,
    WritePastTheEnd,
    Replace,
    Sync,
    Shrink,
    Grow,
    Punch,
    Evict,
}

const ALL: [Operation; 9] = [
    Operation::Overwrite,
    Operation::WriteInPlace,
    Operation::WritePastTheEnd,
    Operation::Replace,
    Operation::Sync,
    Operation::Shrink,
    Operation::Grow,
    Operation::Punch,
    Operation::Evict,
];

/// The bytes that the operation's write changes.
const WRITTEN: std::ops::Range<usize> = PAGE + 700..PAGE + 1800;
const SIZE: usize = 5 * PAGE + 1000;

fn key() -> FileKey {
    FileKey::new(b"the file").unwrap()
}

/// What remains after a kill.
struct Killed {
    memory: ArenaMemory,
    files: DiskFiles,
    /// Whether the operation had returned.
    returned: bool,
}

fn options(block_bytes: u32) -> DiskOptions {
    DiskOptions { block_bytes, ..DiskOptions::default() }
}

/// A persistent file on a disk, which has bytes of it that the cache has not.
fn opened(block_bytes: u32) -> (EngineFixture, TestFile) {
    let lab = EngineFixture::new(7, 64, &[options(block_bytes)], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let id = disk.create_file();
    disk.change_behind(id, SIZE as u64, 0, &bytes(1, 0, SIZE));
    let file = lab.here.engine.open_persistent(lab.here.devices[0], disk.backing(id), &key(), SIZE as u64);
    (lab, TestFile { file, disk, id })
}

/// A file with a clean page, dirty ones, and one of which some sectors are dirty.
async fn prepare(here: &Inside, file: &TestFile) -> Vec<u8> {
    let mut contents = bytes(1, 0, SIZE);
    here.read(file, 0, SIZE).await.unwrap();
    for (at, len) in [(PAGE + 512, 512), (2 * PAGE, PAGE), (4 * PAGE, PAGE), (5 * PAGE, 1000)] {
        here.write(file, at as u64, len, 2).await.unwrap();
        contents[at..at + len].copy_from_slice(&bytes(2, at as u64, len));
    }
    contents
}

impl Operation {
    /// The contents after it.
    fn after(self, before: &[u8]) -> Vec<u8> {
        let mut after = before.to_vec();
        let mut write = |at: usize, len: usize| {
            after.resize(after.len().max(at + len), 0);
            after[at..at + len].copy_from_slice(&bytes(3, at as u64, len));
        };
        match self {
            Self::Overwrite | Self::Replace => write(2 * PAGE + 100, 3000),
            Self::WriteInPlace => write(WRITTEN.start, WRITTEN.len()),
            Self::WritePastTheEnd => write(SIZE + 100, 2 * PAGE),
            Self::Shrink => after.truncate(2 * PAGE + 77),
            Self::Grow => after.resize(7 * PAGE + 5, 0),
            Self::Punch => after[PAGE..3 * PAGE].fill(0),
            Self::Sync | Self::Evict => {}
        }
        after
    }

    async fn perform(self, here: &Inside, file: &TestFile) {
        let write = |at: usize, len: usize| here.write(file, at as u64, len, 3);
        match self {
            Self::Overwrite => write(2 * PAGE + 100, 3000).await.unwrap(),
            Self::Replace => {
                let shown = here.engine.read_pinned(&file.file, 2 * PAGE as u64, PAGE).await.unwrap();
                write(2 * PAGE + 100, 3000).await.unwrap();
                drop(shown);
            }
            Self::WriteInPlace => write(WRITTEN.start, WRITTEN.len()).await.unwrap(),
            Self::WritePastTheEnd => write(SIZE + 100, 2 * PAGE).await.unwrap(),
            Self::Sync => here.sync(file).await.unwrap(),
            Self::Shrink => here.engine.set_size(&file.file, 2 * PAGE as u64 + 77).await.unwrap(),
            Self::Grow => here.engine.set_size(&file.file, 7 * PAGE as u64 + 5).await.unwrap(),
            Self::Punch => here.engine.punch(&file.file, PAGE as u64..3 * PAGE as u64).await.unwrap(),
            Self::Evict => {
                here.engine.drop_clean_pages();
                here.read(file, 0, SIZE).await.unwrap();
            }
        }
    }
}

/// Performs the operation in a process that is killed before store `number`. `None` if there were not as many.
fn killed_before(number: u64, operation: Operation, block_bytes: u32) -> Option<(Killed, Vec<u8>)> {
    let (lab, file) = opened(block_bytes);
    let before = lab.run(prepare(&lab.here, &file));
    let disk = &file.disk;
    let (left, returned) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
    let (told, has_returned, engine, on) =
        (Arc::clone(&left), Arc::clone(&returned), Arc::downgrade(&lab.here.engine), Arc::clone(disk));
    lab.here.engine.try_call_at_store(number, move || {
        // At the end of the test the engine goes.
        let Some(engine) = engine.upgrade() else { return };
        let memory = engine.frames().memory().copy().unwrap();
        let files = on.files_after_kill(&mut Random::new(number));
        *told.lock().unwrap() = Some(Killed { memory, files, returned: has_returned.load(Ordering::Relaxed) });
    });
    lab.run(async {
        operation.perform(&lab.here, &file).await;
        returned.store(true, Ordering::Relaxed);
    });
    let left = left.lock().unwrap().take();
    left.map(|left| (left, before))
}

/// The successor's lab with the adopted file.
fn revive(left: Killed, block_bytes: u32) -> (EngineFixture, TestFile) {
    let recovered = Recovered::look(left.memory);
    assert_eq!(recovered.quarantined(), afflux_engine::Quarantined::default());
    revive_found(recovered, left.files, block_bytes)
}

fn revive_found(recovered: Recovered, files: DiskFiles, block_bytes: u32) -> (EngineFixture, TestFile) {
    let world = World::new(WorldOptions::seed(8));
    let mut machine = SimMachine::recover(&world, recovered, 1, Setup::default());
    let disk = Disk::new(&world, 0, options(block_bytes));
    disk.restore(files);
    machine.add("disk", Arc::clone(&disk));
    let lab = EngineFixture::of(world, machine);
    let (id, here) = (DiskFileId(0), Arc::clone(&lab.here));
    let adopted = async { here.engine.adopt(here.devices[0], disk.backing(id), &key(), disk.size(id)).await };
    let opened = || here.engine.open_persistent(here.devices[0], disk.backing(id), &key(), disk.size(id));
    let file = lab.run(adopted).unwrap_or_else(opened);
    (lab, TestFile { file, disk, id })
}

/// The host's file, as a rescue sees it.
struct HostBytes(Vec<u8>);

impl RescuedFile for HostBytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error> {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        self.0.resize(self.0.len().max(end), 0);
        self.0[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn set_size(&mut self, size: u64) -> Result<(), Self::Error> {
        self.0.resize(size as usize, 0);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The file after a rescue.
fn rescued(left: &Killed, block_bytes: u32) -> Vec<u8> {
    let disk = Disk::new(&World::new(WorldOptions::seed(8)), 0, options(block_bytes));
    disk.restore(left.files.clone());
    let mut file = HostBytes(disk.contents(DiskFileId(0)));
    let recovered = Recovered::look(left.memory.copy().unwrap());
    let Ok(_) = recovered.write_home(&key(), &mut file);
    let frames = recovered.written(1);
    assert_eq!(frames.free_count(), frames.total(), "the next engine finds nothing");
    assert_eq!(Recovered::look(Arc::clone(frames.memory())).files().count(), 0);
    file.0
}

/// Checks a successor, and returns what it shows.
fn check(left: Killed, operation: Operation, before: &[u8], block_bytes: u32, what: &str) -> Vec<u8> {
    let after = &operation.after(before)[..];
    let returned = left.returned;
    let rescued = rescued(&left, block_bytes);
    let (lab, file) = revive(left, block_bytes);
    let all = 9 * PAGE;
    let seen = lab.run(lab.here.read(&file, 0, all)).unwrap();
    if returned {
        assert_eq!(seen.len(), after.len(), "{what}: size");
    }
    assert!(rescued == seen, "{what}: a rescue writes what a successor shows");
    assert!(seen.len() >= before.len().min(after.len()) && seen.len() <= before.len().max(after.len()), "{what}");
    let at = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
    for (place, byte) in seen.iter().enumerate() {
        let (old, new) = (at(before, place), at(after, place));
        assert!(*byte == new || !returned && *byte == old, "{what}: byte {place} is {byte}, was {old}, becomes {new}");
    }
    if matches!(operation, Operation::Shrink | Operation::Grow | Operation::Punch) {
        assert!(seen == before || seen == after, "{what}: a change of shape happens as a whole, or not at all");
    }
    lab.run(lab.here.sync(&file)).unwrap();
    assert_eq!(file.disk.durable(file.id), seen, "{what}: what was read is what is durable");
    lab.here.engine.drop_clean_pages();
    assert_eq!(lab.run(lab.here.read(&file, 0, all)).unwrap(), seen, "{what}: nothing goes back");
    seen
}

#[test]
fn a_kill_before_any_store_of_an_operation_loses_nothing_accepted() {
    for block_bytes in [512, 4096] {
        for operation in ALL {
            let mut number = 1;
            while let Some((left, before)) = killed_before(number, operation, block_bytes) {
                check(
                    left,
                    operation,
                    &before,
                    block_bytes,
                    &format!("{operation:?} on {block_bytes}, store {number}"),
                );
                number += 1;
            }
            assert!(number > 2, "{operation:?}: {number} stores");
        }
    }
}

/// While a change waits for its disk, memory has its intent alone.
#[test]
fn a_change_of_shape_that_waits_for_the_disk_is_carried_out() {
    for operation in [Operation::Shrink, Operation::Grow, Operation::Punch] {
        let (lab, file) = opened(512);
        let before = lab.run(prepare(&lab.here, &file));
        let disk = Arc::clone(&file.disk);
        disk.add_fault(Fault::always(FaultTarget::Layout, FaultWhat::Hang));
        let (here, changed) = (Arc::clone(&lab.here), file.clone());
        lab.world.spawn("change", async move { operation.perform(&here, &changed).await });
        lab.run(lab.world.platform().sleep_until(lab.world.platform().now().after(100 * Nanos::MILLISECOND)));
        for seed in 0..8 {
            let memory = lab.here.engine.frames().memory().copy().unwrap();
            let left = Killed { memory, files: disk.files_after_kill(&mut Random::new(seed)), returned: false };
            let seen = check(left, operation, &before, 512, &format!("{operation:?}, kill {seed}"));
            assert!(seen == operation.after(&before), "{operation:?}, kill {seed}");
        }
    }
}

/// Flags, the count of writers and the masks of sectors in each record in use, and the sectors in its mark: one bit of
/// them flips while nobody runs. (The scan's own tests flip all bits.)
// rule: 12: a flipped flag or sector of an arena's record sends no wrong byte home, and loses no page without a word
// kept in: `product/pages/src/page/table.rs`, `product/pages/src/page/found.rs`
#[test]
fn a_flipped_flag_or_sector_sends_no_wrong_byte_home_and_loses_none_untold() {
    for block_bytes in [512, 4096] {
        let (lab, file) = opened(block_bytes);
        let mut contents = bytes(1, 0, SIZE);
        lab.run(lab.here.read(&file, 0, PAGE)).unwrap();
        lab.run(lab.here.read(&file, 3 * PAGE as u64, PAGE)).unwrap();
        for (at, len) in [(PAGE + 512, 512), (2 * PAGE, PAGE), (3 * PAGE + 100, 300)] {
            lab.run(lab.here.write(&file, at as u64, len, 2)).unwrap();
            contents[at..at + len].copy_from_slice(&bytes(2, at as u64, len));
        }
        let left = kill(&lab);
        let records: FrameTable<[AtomicU64; 4]> = left.memory.table(Part::Records);
        let marks: FrameTable<[AtomicU64; 1]> = left.memory.table(Part::Marks);
        let words_of = |frame: usize| records[frame].iter().chain(&marks[frame]).collect::<Vec<_>>();
        let has_page = |frame: &usize| records[*frame][0].load(Ordering::Relaxed) != 0;
        let used: Vec<usize> = (0..records.len()).filter(has_page).collect();
        assert!(used.len() >= 4, "{used:?}");
        let (mut told, mut tries) = (0, 0);
        for frame in used {
            let flags = (44..53).chain([32]).map(|bit| (0, bit));
            let sectors = (32..48).map(|bit| (2, bit)).chain((0..9).map(|bit| (4, bit)));
            for (word, bit) in flags.chain(sectors) {
                words_of(frame)[word].fetch_xor(1 << bit, Ordering::Relaxed);
                let what = format!("frame {frame}, word {word}, bit {bit}, blocks of {block_bytes}");
                told += u64::from(goes_home(&left, block_bytes, &contents, &what));
                words_of(frame)[word].fetch_xor(1 << bit, Ordering::Relaxed);
                tries += 1;
            }
        }
        assert!(told > 0 && told < tries, "{told} of {tries}");
    }
}

/// Checks what a successor of damaged memory makes of the file. Returns whether it reports a loss.
fn goes_home(left: &Killed, block_bytes: u32, contents: &[u8], what: &str) -> bool {
    let recovered = Recovered::look(left.memory.copy().unwrap());
    let is_told = recovered.needs_new_verifier();
    let (lab, file) = revive_found(recovered, left.files.clone(), block_bytes);
    let seen = lab.run(lab.here.read(&file, 0, SIZE)).unwrap();
    lab.run(lab.here.sync(&file)).unwrap();
    let home = file.disk.durable(file.id);
    assert!(home == seen, "{what}: what is read is what is durable");
    let old = bytes(1, 0, SIZE);
    assert!((0..SIZE).all(|at| home[at] == contents[at] || home[at] == old[at]), "{what}: bytes from elsewhere");
    assert!(home == contents || is_told, "{what}: a loss");
    is_told
}

fn kill(lab: &EngineFixture) -> Killed {
    let memory = lab.here.engine.frames().memory().copy().unwrap();
    Killed { memory, files: lab.here.disks[0].files_after_kill(&mut Random::new(1)), returned: true }
}

/// A file that was opened without a key cannot be found again.
#[test]
fn dirty_pages_of_a_file_without_a_key_ask_for_a_new_verifier() {
    let lab = EngineFixture::plain(1);
    lab.here.engine.frames().memory().header().set_verifier(5);
    let file = lab.file(0, 0, 0);
    lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
    let recovered = Recovered::look(kill(&lab).memory);
    assert!(recovered.needs_new_verifier() && recovered.files().count() == 0);
    let world = World::new(WorldOptions::seed(8));
    let machine = SimMachine::recover(&world, recovered, 6, Setup::default());
    assert_eq!(machine.engine.frames().memory().header().verifier(), 6);
    let status = machine.engine.status();
    assert_eq!(status.free_bytes, status.cache_bytes, "its pages are gone");
}

/// The first flush after a kill also covers what the earlier process wrote and did not flush.
#[test]
fn a_failed_first_flush_of_an_adopted_file_is_a_loss() {
    let lab = EngineFixture::new(1, 256, &[options(512)], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let id = disk.create_file();
    let file = lab.here.engine.open_persistent(lab.here.devices[0], disk.backing(id), &key(), 0);
    let file = TestFile { file, disk, id };
    lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
    let (lab, file) = revive(kill(&lab), 512);
    assert_eq!(lab.here.dirty_bytes(), PAGE as u64, "a found page is charged");
    let error = DeviceError::Io { errno: 5 };
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(error)).times(1));
    lab.run(lab.here.sync(&file)).unwrap_err();
    assert_eq!(lab.here.engine.lost_epoch(), 1);
    lab.run(lab.here.sync(&file)).unwrap();
    assert_eq!(file.disk.durable(file.id), bytes(2, 0, PAGE));
}

// rule: a killed server's successor still flushes what was written to the device and not flushed
// kept in: `product/engine/src/recovery/slots.rs`, `product/engine/src/devices/file.rs`
#[test]
fn a_clean_file_that_needs_a_flush_is_found_and_a_flushed_one_is_not() {
    let lab = EngineFixture::new(1, 256, &[options(512)], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let id = disk.create_file();
    let file = lab.here.engine.open_persistent(lab.here.devices[0], disk.backing(id), &key(), 0);
    let file = TestFile { file, disk, id };
    lab.run(lab.here.write(&file, 0, PAGE, 2)).unwrap();
    while lab.here.dirty_bytes() > 0 {
        lab.run(lab.world.platform().sleep_until(lab.world.platform().now().after(10 * Nanos::MILLISECOND)));
    }
    let left = kill(&lab);
    let found = Recovered::look(left.memory.copy().unwrap());
    assert_eq!(found.files().collect::<Vec<_>>(), [(&key(), 0)]);
    lab.run(lab.here.sync(&file)).unwrap();
    assert_eq!(Recovered::look(kill(&lab).memory).files().count(), 0);
    lab.run(lab.here.write(&file, 0, PAGE, 3)).unwrap();
    assert_eq!(Recovered::look(kill(&lab).memory).files().collect::<Vec<_>>(), [(&key(), 1)]);

    let (lab, file) = revive(left, 512);
    let error = DeviceError::Io { errno: 5 };
    lab.here.disks[0].add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Error(error)).times(1));
    lab.run(lab.here.sync(&file)).unwrap_err();
    assert_eq!(lab.here.engine.lost_epoch(), 1, "clients send again what the earlier process had written");
}

/// A successor that is killed before it has adopted anything leaves the pages to the next one.
#[test]
fn pages_that_nobody_has_adopted_outlive_the_next_kill_or_are_forgotten() {
    let lab = EngineFixture::new(1, 256, &[options(512)], &[]);
    let disk = Arc::clone(&lab.here.disks[0]);
    let id = disk.create_file();
    let file = lab.here.engine.open_persistent(lab.here.devices[0], disk.backing(id), &key(), 0);
    let file = TestFile { file, disk, id };
    lab.run(lab.here.write(&file, 0, 3 * PAGE, 2)).unwrap();
    let world = World::new(WorldOptions::seed(8));
    let second = SimMachine::recover(&world, Recovered::look(kill(&lab).memory), 1, Setup::default());
    assert_eq!(second.engine.census().unadopted, 3);
    let third = Recovered::look(second.engine.frames().memory().copy().unwrap());
    assert_eq!(third.files().map(|(_, pages)| pages).collect::<Vec<_>>(), [3]);
    assert!(second.engine.try_forget_found(&key()) && !second.engine.try_forget_found(&key()));
    let status = second.engine.status();
    assert_eq!(status.free_bytes, status.cache_bytes);
}
