//! The contract of every device, written against `afflux_engine::Device` alone. The checks need a device, a function
//! that makes files on it, and one that lets its requests end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afflux_engine::{Backing, Device, DeviceError, Operation, Platform, Request};
use afflux_frames::Frames;
use afflux_simulator::{Disk, DiskOptions, Random, World, WorldOptions};

/// A device under test.
struct Subject<'a> {
    device: Arc<dyn Device>,
    /// Makes an empty file.
    create: &'a dyn Fn() -> Backing,
    /// Returns once every request submitted so far has ended.
    settle: &'a dyn Fn(),
    frames: Arc<Frames>,
}

type Answer = (Result<(), DeviceError>, Vec<u8>);

impl Subject<'_> {
    fn send(&self, file: &Backing, operation: Operation, bytes: &[u8], answers: &Arc<Mutex<Vec<Answer>>>) {
        let answers = Arc::clone(answers);
        let done = move |result, bytes| answers.lock().unwrap().push((result, bytes));
        self.device.submit(Request::probe(&self.frames, file.clone(), operation, bytes, done));
    }

    fn ask(&self, file: &Backing, operation: Operation, bytes: &[u8]) -> Answer {
        let answers = Arc::default();
        self.send(file, operation, bytes, &answers);
        (self.settle)();
        let mut answers = answers.lock().unwrap();
        assert_eq!(answers.len(), 1, "{operation:?} is answered once");
        answers.pop().unwrap()
    }

    fn write(&self, file: &Backing, offset: u64, bytes: &[u8]) {
        let operation = Operation::Write { offset, len: bytes.len() as u32 };
        assert_eq!(self.ask(file, operation, bytes).0, Ok(()), "{operation:?}");
    }

    fn read(&self, file: &Backing, offset: u64, len: u32) -> Vec<u8> {
        let (result, bytes) = self.ask(file, Operation::Read { offset, len }, &[]);
        assert_eq!(result, Ok(()), "read of {len} at {offset}");
        bytes
    }

    fn plain(&self, file: &Backing, operation: Operation) {
        assert_eq!(self.ask(file, operation, &[]).0, Ok(()), "{operation:?}");
    }
}

fn check_all(subject: &Subject<'_>) {
    limits_are_usable(subject);
    reads_give_what_was_written_and_zeros_past_the_end(subject);
    a_tail_write_makes_the_exact_size(subject);
    sizes_cut_and_extend_with_zeros(subject);
    punched_ranges_read_as_zeros(subject);
    reserving_changes_nothing_that_is_read(subject);
    files_do_not_mix(subject);
    a_full_queue_is_answered(subject);
    a_dropped_request_is_told_as_lost(subject);
    random_operations_match_an_array(subject);
}

fn limits_are_usable(subject: &Subject<'_>) {
    let limits = subject.device.limits();
    assert!(limits.block_bytes == 512 || limits.block_bytes == 4096);
    assert!(limits.request_bytes_max >= 4096 && limits.request_bytes_max.is_multiple_of(4096));
    assert!(limits.depth >= 1);
    assert!(subject.device.free_bytes_hint() > 0);
}

fn reads_give_what_was_written_and_zeros_past_the_end(subject: &Subject<'_>) {
    let file = (subject.create)();
    assert_eq!(subject.read(&file, 0, 4096), [0; 4096]);
    subject.write(&file, 4096, &[7; 4096]);
    assert_eq!(subject.read(&file, 0, 4096), [0; 4096]);
    let both = subject.read(&file, 4096, 8192);
    assert_eq!(both[..4096], [7; 4096]);
    assert_eq!(both[4096..], [0; 4096]);
}

/// The size cannot be queried, so the test grows the file by a page and reads the bytes.
fn a_tail_write_makes_the_exact_size(subject: &Subject<'_>) {
    let file = (subject.create)();
    subject.write(&file, 0, &[9; 5000]);
    subject.plain(&file, Operation::SetSize { size: 8192 });
    let bytes = subject.read(&file, 0, 8192);
    assert_eq!(bytes[..5000], [9; 5000]);
    assert_eq!(bytes[5000..], [0; 3192]);
}

fn sizes_cut_and_extend_with_zeros(subject: &Subject<'_>) {
    let file = (subject.create)();
    subject.write(&file, 0, &[5; 8192]);
    subject.plain(&file, Operation::SetSize { size: 100 });
    subject.plain(&file, Operation::SetSize { size: 8192 });
    let bytes = subject.read(&file, 0, 8192);
    assert_eq!(bytes[..100], [5; 100]);
    assert_eq!(bytes[100..], [0; 8092]);
    subject.plain(&file, Operation::Sync);
}

fn punched_ranges_read_as_zeros(subject: &Subject<'_>) {
    let file = (subject.create)();
    subject.write(&file, 0, &[5; 12288]);
    match subject.ask(&file, Operation::Punch { offset: 4096, len: 4096 }, &[]).0 {
        Err(DeviceError::Unsupported) => return,
        result => assert_eq!(result, Ok(())),
    }
    let bytes = subject.read(&file, 0, 12288);
    assert_eq!(bytes[..4096], [5; 4096]);
    assert_eq!(bytes[4096..8192], [0; 4096]);
    assert_eq!(bytes[8192..], [5; 4096]);
}

fn reserving_changes_nothing_that_is_read(subject: &Subject<'_>) {
    let file = (subject.create)();
    subject.write(&file, 0, &[5; 4096]);
    match subject.ask(&file, Operation::Reserve { offset: 0, len: 65536 }, &[]).0 {
        Err(DeviceError::Unsupported) => return,
        result => assert_eq!(result, Ok(())),
    }
    let bytes = subject.read(&file, 0, 8192);
    assert_eq!(bytes[..4096], [5; 4096]);
    assert_eq!(bytes[4096..], [0; 4096]);
}

fn files_do_not_mix(subject: &Subject<'_>) {
    let files: Vec<Backing> = (0..4).map(|_| (subject.create)()).collect();
    for (at, file) in files.iter().enumerate() {
        subject.write(file, 0, &[at as u8 + 1; 4096]);
    }
    for (at, file) in files.iter().enumerate() {
        assert_eq!(subject.read(file, 0, 4096), [at as u8 + 1; 4096]);
    }
}

fn a_full_queue_is_answered(subject: &Subject<'_>) {
    let file = (subject.create)();
    let depth = subject.device.limits().depth.min(32);
    let answers = Arc::default();
    for at in 0..depth {
        let operation = Operation::Write { offset: u64::from(at) * 4096, len: 4096 };
        subject.send(&file, operation, &[at as u8; 4096], &answers);
    }
    (subject.settle)();
    assert_eq!(answers.lock().unwrap().len(), depth as usize);
    for at in 0..depth {
        assert_eq!(subject.read(&file, u64::from(at) * 4096, 4096), [at as u8; 4096]);
    }
}

fn a_dropped_request_is_told_as_lost(subject: &Subject<'_>) {
    let file = (subject.create)();
    let answers: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let told = Arc::clone(&answers);
    drop(Request::probe(&subject.frames, file, Operation::Sync, &[], move |result, bytes| {
        told.lock().unwrap().push((result, bytes));
    }));
    assert_eq!(answers.lock().unwrap().pop().unwrap().0, Err(DeviceError::Lost));
}

fn random_operations_match_an_array(subject: &Subject<'_>) {
    let block = u64::from(subject.device.limits().block_bytes);
    let mut random = Random::new(17);
    let file = (subject.create)();
    let mut expected: Vec<u8> = Vec::new();
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for turn in 0..200 {
        let kind = random.below(4);
        *counts.entry(kind).or_default() += 1;
        let offset = random.below(65536 / block) * block;
        let len = (random.below(8) + 1) * block;
        match kind {
            0 => {
                let bytes = subject.read(&file, offset, len as u32);
                let right = (offset..offset + len).map(|at| expected.get(at as usize).copied().unwrap_or(0));
                assert!(right.eq(bytes), "turn {turn}: read of {len} at {offset}");
            }
            1 => {
                let size = random.below(65536);
                subject.plain(&file, Operation::SetSize { size });
                expected.resize(size as usize, 0);
            }
            _ => {
                let end = offset + len;
                // A length that is not whole blocks ends at the file's end.
                let len = if end > expected.len() as u64 { len - random.below(block) } else { len };
                let len = if offset + len < expected.len() as u64 { end - offset } else { len };
                let end = (offset + len) as usize;
                if expected.len() < end {
                    expected.resize(end, 0);
                }
                expected[offset as usize..end].fill(turn as u8);
                subject.write(&file, offset, &vec![turn as u8; len as usize]);
            }
        }
    }
    assert!(counts.values().all(|count| *count > 10), "{counts:?}");
}

#[test]
fn the_simulated_disk_conforms() {
    for block_bytes in [512, 4096] {
        for inline_per_mille in [0, 300, 1000] {
            let world = World::new(WorldOptions::seed(5));
            let disk = Disk::new(&world, 0, DiskOptions { block_bytes, inline_per_mille, ..DiskOptions::default() });
            let platform = Arc::clone(world.platform());
            check_all(&Subject {
                device: Arc::clone(&disk) as Arc<dyn Device>,
                create: &|| disk.backing(disk.create_file()),
                settle: &|| {
                    world
                        .run(async {
                            while disk.in_flight() > 0 {
                                platform.sleep_until(platform.now().after(10_000)).await;
                            }
                        })
                        .unwrap();
                },
                frames: Arc::new(Frames::new(1 << 20).unwrap()),
            });
        }
    }
}
