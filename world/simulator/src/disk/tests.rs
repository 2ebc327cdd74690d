use std::sync::atomic::{AtomicU32, Ordering};

use afflux_engine::{Nanos, Platform};
use afflux_frames::Frames;

use super::*;
use crate::WorldOptions;

type Answer = (Result<(), DeviceError>, Vec<u8>, u64);

/// A world, a disk with one file, and probes of it.
struct ProbedDisk {
    world: World,
    disk: Arc<Disk>,
    file: DiskFileId,
    frames: Arc<Frames>,
    answers: Arc<Mutex<BTreeMap<u32, Answer>>>,
    sent: AtomicU32,
}

impl ProbedDisk {
    fn new(seed: u64, options: DiskOptions) -> Self {
        let world = World::new(WorldOptions { step_ns: 0, ..WorldOptions::seed(seed) });
        let disk = Disk::new(&world, 0, options);
        let file = disk.create_file();
        Self {
            world,
            disk,
            file,
            frames: Arc::new(Frames::new(1 << 20).unwrap()),
            answers: Arc::default(),
            sent: AtomicU32::new(0),
        }
    }

    fn send(&self, operation: Operation, bytes: &[u8]) -> u32 {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let (answers, platform) = (Arc::clone(&self.answers), Arc::clone(self.world.platform()));
        let request =
            Request::probe(&self.frames, self.disk.backing(self.file), operation, bytes, move |result, bytes| {
                answers.lock().unwrap().insert(number, (result, bytes, platform.now().0));
            });
        self.disk.submit(request);
        number
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> u32 {
        self.send(Operation::Write { offset, len: bytes.len() as u32 }, bytes)
    }

    /// Lets a virtual second pass.
    fn settle(&self) {
        let until = self.world.platform().now().after(Nanos::SECOND);
        self.world.run(self.world.platform().sleep_until(until)).unwrap();
    }

    fn answer(&self, number: u32) -> Option<Answer> {
        self.answers.lock().unwrap().remove(&number)
    }

    /// Sends one request and waits for its answer.
    fn ask(&self, operation: Operation, bytes: &[u8]) -> (Result<(), DeviceError>, Vec<u8>) {
        let number = self.send(operation, bytes);
        self.settle();
        let (result, bytes, _) = self.answer(number).expect("an answer within a second");
        (result, bytes)
    }
}

const IO: DeviceError = DeviceError::Io { errno: 5 };

#[test]
fn a_request_takes_the_latency_and_its_bytes_at_the_rate() {
    let options = DiskOptions { latency_ns: 1000, bytes_per_second: 4_096_000, ..DiskOptions::default() };
    let bench = ProbedDisk::new(1, options);
    let requests = [bench.write(0, &[1; 4096]), bench.write(4096, &[2; 4096])];
    bench.settle();
    let mut times: Vec<u64> = requests.map(|number| bench.answer(number).unwrap().2).into();
    times.sort_unstable();
    assert_eq!(times, [1_001_000, 2_001_000]);
}

#[test]
fn requests_in_flight_end_in_an_order_drawn_from_the_seed() {
    let order = |seed| {
        let bench = ProbedDisk::new(seed, DiskOptions::default());
        let requests: Vec<u32> = (0..8).map(|at| bench.write(at * 4096, &[7; 4096])).collect();
        bench.settle();
        let mut times: Vec<(u64, u32)> =
            requests.iter().map(|number| (bench.answer(*number).unwrap().2, *number)).collect();
        times.sort_unstable();
        (times, bench.world.trace_hash())
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1).0, order(2).0);
}

#[test]
fn only_a_sync_makes_what_was_written_before_it_durable() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    bench.ask(Operation::Write { offset: 0, len: 512 }, &[1; 512]).0.unwrap();
    assert_eq!(bench.disk.durable(bench.file), []);
    // The sync is submitted before the write has ended, so it does not cover the write.
    let sync = bench.send(Operation::Sync, &[]);
    let write = bench.write(512, &[2; 512]);
    bench.settle();
    bench.answer(sync).unwrap().0.unwrap();
    bench.answer(write).unwrap().0.unwrap();
    assert_eq!(bench.disk.durable(bench.file), [1; 512]);
    assert_eq!(bench.disk.contents(bench.file).len(), 1024);
}

#[test]
fn without_a_volatile_cache_writes_are_durable_at_once() {
    let bench = ProbedDisk::new(1, DiskOptions { volatile_cache: false, ..DiskOptions::default() });
    bench.ask(Operation::Write { offset: 0, len: 100 }, &[1; 100]).0.unwrap();
    assert_eq!(bench.disk.durable(bench.file), [1; 100]);
}

#[test]
fn a_power_loss_keeps_what_was_synced_and_some_sectors_of_the_rest() {
    let mut survivors = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let bench = ProbedDisk::new(seed, DiskOptions::default());
        bench.ask(Operation::Write { offset: 0, len: 4096 }, &[1; 4096]).0.unwrap();
        bench.ask(Operation::Sync, &[]).0.unwrap();
        bench.ask(Operation::Write { offset: 0, len: 4096 }, &[2; 4096]).0.unwrap();
        bench.disk.crash();
        let left = bench.disk.contents(bench.file);
        assert_eq!(left, bench.disk.durable(bench.file));
        assert_eq!(left.len(), 4096);
        for sector in left.chunks(512) {
            assert!(sector == [1; 512] || sector == [2; 512]);
        }
        survivors.insert(left.chunks(512).map(|sector| sector[0]).collect::<Vec<_>>());
    }
    assert!(survivors.len() > 10, "power losses differ by seed");
}

#[test]
fn faults_strike_their_operation_file_and_range_so_often() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    let write = |offset| bench.ask(Operation::Write { offset, len: 512 }, &[3; 512]).0;
    bench.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Error(IO)).times(2).range(4096, 512));
    assert_eq!(write(0), Ok(()));
    assert_eq!(write(4096), Err(IO));
    assert_eq!(write(4096), Err(IO));
    assert_eq!(write(4096), Ok(()));
    bench.disk.add_fault(Fault::always(FaultTarget::Sync, FaultWhat::Lost));
    assert_eq!(bench.ask(Operation::Sync, &[]).0, Err(DeviceError::Lost));
    assert_eq!(bench.disk.durable_size(bench.file), 0);
    bench.disk.clear_faults();
    assert_eq!(bench.ask(Operation::Sync, &[]).0, Ok(()));
    bench.disk.add_fault(Fault::always(FaultTarget::Any, FaultWhat::Error(IO)).on(DiskFileId(9)));
    assert_eq!(write(0), Ok(()));
    assert_eq!(bench.disk.failures(bench.file), 3);
}

#[test]
fn a_hung_disk_answers_once_released_and_a_delayed_request_late() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    bench.disk.hang();
    let first = bench.write(0, &[1; 512]);
    bench.settle();
    assert_eq!(bench.answer(first), None);
    bench.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Hang).times(1));
    let second = bench.write(512, &[2; 512]);
    bench.disk.release();
    bench.settle();
    assert!(bench.answer(first).is_some() && bench.answer(second).is_some());
    bench.disk.add_fault(Fault::always(FaultTarget::Write, FaultWhat::Delay { ns: 5 * Nanos::SECOND }).times(1));
    let third = bench.write(0, &[1; 512]);
    bench.settle();
    assert_eq!(bench.answer(third), None);
    (0..5).for_each(|_| bench.settle());
    assert!(bench.answer(third).is_some());
}

#[test]
fn a_full_disk_says_so_and_reserved_or_freed_space_can_be_written() {
    let bench = ProbedDisk::new(1, DiskOptions { capacity_bytes: 3 * 4096, ..DiskOptions::default() });
    assert_eq!(bench.disk.free_bytes_hint(), 3 * 4096);
    bench.ask(Operation::Reserve { offset: 8192, len: 4096 }, &[]).0.unwrap();
    assert_eq!(bench.disk.free_bytes_hint(), 2 * 4096);
    assert_eq!(bench.disk.size(bench.file), 0);
    bench.ask(Operation::Write { offset: 0, len: 8192 }, &[1; 8192]).0.unwrap();
    let write = |offset| bench.ask(Operation::Write { offset, len: 4096 }, &[2; 4096]).0;
    assert_eq!(write(12288), Err(DeviceError::NoSpace));
    assert_eq!(write(8192), Ok(()));
    assert_eq!(bench.ask(Operation::Reserve { offset: 12288, len: 1 }, &[]).0, Err(DeviceError::NoSpace));
    bench.ask(Operation::Punch { offset: 0, len: 4096 }, &[]).0.unwrap();
    assert_eq!(write(12288), Ok(()));
}

#[test]
fn a_request_that_breaks_the_contract_fails_the_run() {
    let breaks = |operation, bytes: &[u8]| {
        let bench = ProbedDisk::new(1, DiskOptions::default());
        bench.send(operation, bytes);
        bench.world.run(std::future::pending::<()>()).unwrap_err().to_string()
    };
    assert!(breaks(Operation::Write { offset: 100, len: 512 }, &[0; 512]).contains("breaks the device contract"));
    assert!(breaks(Operation::Read { offset: 0, len: 100 }, &[]).contains("whole blocks"));
    assert!(breaks(Operation::Punch { offset: 512, len: 4096 }, &[]).contains("whole pages"));
}

#[test]
fn two_requests_whose_order_matters_must_not_be_in_flight_together() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    bench.write(0, &[1; 4096]);
    bench.write(4096, &[1; 4096]);
    bench.send(Operation::SetSize { size: 8192 }, &[]);
    bench.settle();
    bench.write(0, &[1; 4096]);
    bench.send(Operation::SetSize { size: 100 }, &[]);
    let error = bench.world.run(std::future::pending::<()>()).unwrap_err().to_string();
    assert!(error.contains("of the same bytes is in flight"), "{error}");
}

#[test]
fn memory_that_changes_while_it_is_written_fails_the_run() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    bench.write(0, &[1; 4096]);
    // A probe's frames cannot be reached from here, so the test changes the bytes that they are compared with.
    bench.disk.lock().pending.values_mut().for_each(|pending| pending.submitted[700] ^= 1);
    let error = bench.world.run(std::future::pending::<()>()).unwrap_err().to_string();
    assert!(error.contains("memory changed while in flight, at byte 700"), "{error}");
}

#[test]
fn a_fault_holds_in_its_window_and_on_its_part_of_the_medium() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    let write = |offset| bench.ask(Operation::Write { offset, len: 512 }, &[3; 512]).0;
    let fault = Fault::always(FaultTarget::Write, FaultWhat::Error(IO));
    // The fault holds in the first half of each two-second period, from second 2 to 8. Each request takes a second.
    let second = Nanos::SECOND;
    let window = FaultWindow {
        from_ns: 2 * second,
        until_ns: 8 * second,
        every_ns: 2 * second,
        lasting_ns: second,
        medium: None,
    };
    bench.disk.add_fault_within(fault.clone(), window);
    let results: Vec<bool> = (0..10).map(|_| write(0).is_ok()).collect();
    assert_eq!(results, [true, true, false, true, false, true, false, true, true, true]);
    // Without a layout, positions on the medium are the file's offsets.
    bench.disk.add_fault_within(fault, FaultWindow { medium: Some((4096, 1)), ..FaultWindow::default() });
    assert_eq!([write(3584), write(4096), write(4608)], [Ok(()), Err(IO), Ok(())]);
    let sync = bench.ask(Operation::Sync, &[]).0;
    assert_eq!(sync, Ok(()));
}

#[test]
fn a_disk_hangs_is_full_and_has_bad_sectors_at_set_times() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    let at = |ms: u64, step: fn(&Disk)| bench.disk.call_at(ms * Nanos::MILLISECOND, step);
    at(1_500, Disk::hang);
    at(3_500, Disk::release);
    at(5_500, |disk| disk.set_capacity(0));
    at(7_500, Disk::restore_capacity);
    let bad = Fault {
        file: Some(bench.file),
        offset: 4096,
        len: 1,
        ..Fault::always(FaultTarget::Data, FaultWhat::Error(IO))
    };
    bench.disk.add_fault(bad);
    let write = |offset| bench.write(offset, &[3; 512]);
    let first = write(0);
    bench.settle();
    assert!(bench.answer(first).is_some());
    bench.settle();
    let hung = write(512);
    bench.settle();
    assert_eq!(bench.answer(hung), None);
    bench.settle();
    assert!(bench.answer(hung).is_some_and(|answer| answer.0.is_ok() && answer.2 >= 3_500_000_000));
    bench.settle();
    bench.settle();
    // At second 6 the disk is full for new space.
    assert_eq!(bench.ask(Operation::Write { offset: 1 << 20, len: 512 }, &[1; 512]).0, Err(DeviceError::NoSpace));
    bench.settle();
    assert_eq!(bench.ask(Operation::Write { offset: 1 << 20, len: 512 }, &[1; 512]).0, Ok(()));
    for _ in 0..3 {
        assert_eq!(bench.ask(Operation::Write { offset: 4096, len: 512 }, &[1; 512]).0, Err(IO));
        assert_eq!(bench.ask(Operation::Read { offset: 4096, len: 512 }, &[]).0, Err(IO));
    }
    assert_eq!(bench.ask(Operation::Sync, &[]).0, Ok(()));
}

#[test]
fn a_hung_disks_own_time_stands_still() {
    let options = DiskOptions { latency_ns: 1000, bytes_per_second: 4_096_000, ..DiskOptions::default() };
    let bench = ProbedDisk::new(1, options);
    let request = bench.write(0, &[1; 4096]);
    let platform = bench.world.platform();
    bench.world.run(platform.sleep_until(Nanos(501_000))).unwrap();
    bench.disk.hang();
    bench.settle();
    bench.disk.release();
    bench.settle();
    // Half of the millisecond had passed.
    assert_eq!(bench.answer(request).unwrap().2, 1_501_000 - 500_000 + Nanos::SECOND);
}

#[test]
fn a_killed_process_leaves_its_writes_to_the_disk() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    let request = bench.write(0, &[7; 8192]);
    bench.disk.kill_process();
    assert_eq!(bench.answer(request).unwrap().0, Err(DeviceError::Lost));
    assert_eq!(bench.disk.contents(bench.file), [7; 8192]);
    assert_eq!(bench.disk.durable_size(bench.file), 0);
    bench.settle();
    assert_eq!(bench.ask(Operation::Sync, &[]).0, Ok(()));
    assert_eq!(bench.disk.durable(bench.file), [7; 8192]);
}

#[test]
fn the_sectors_that_a_failing_sync_loses_are_counted() {
    let bench = ProbedDisk::new(1, DiskOptions::default());
    assert_eq!(bench.ask(Operation::Write { offset: 0, len: 4096 }, &[7; 4096]).0, Ok(()));
    let error = DeviceError::Io { errno: 5 };
    bench.disk.add_fault(Fault::always(FaultTarget::Sync, FaultWhat::ErrorLosing(error)).times(1));
    assert_eq!(bench.ask(Operation::Sync, &[]).0, Err(error));
    let lost = bench.disk.contents(bench.file).chunks(512).filter(|sector| **sector == [0; 512]).count();
    assert!((1..8).contains(&lost), "{lost} sectors");
    assert_eq!(bench.disk.sectors_lost(bench.file), lost as u64);
}

#[test]
fn a_cache_with_a_size_loses_no_more_than_that() {
    for seed in 0..20 {
        let bench = ProbedDisk::new(seed, DiskOptions { volatile_bytes_max: 8192, ..DiskOptions::default() });
        for page in 0..4 {
            assert_eq!(
                bench.ask(Operation::Write { offset: page * 4096, len: 4096 }, &[page as u8 + 1; 4096]).0,
                Ok(())
            );
        }
        assert_eq!((bench.disk.volatile_bytes(), bench.disk.durable_size(bench.file)), (8192, 8192));
        bench.disk.crash();
        let left = bench.disk.contents(bench.file);
        assert!(left.starts_with(&[[1; 4096], [2; 4096]].concat()), "seed {seed}: the oldest are on the medium");
        assert_eq!(bench.disk.volatile_bytes(), 0);
    }
}
