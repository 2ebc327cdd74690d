//! Textbook cases, each against its formula.

use super::*;

const SECOND: u64 = 1_000_000_000;
const ROTATION_NS: u64 = 8_000_000;
/// Such that 4 KiB take 40 µs: every duration below is whole.
const RATE: u64 = 102_400_000;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

fn rotating() -> RotatingParameters {
    RotatingParameters {
        capacity_bytes: 400_000 * 819_200,
        rotation_ns: ROTATION_NS,
        heads: 4,
        zones: vec![(1000, RATE)],
        seek_settle_ns: 1_000_000,
        seek_sqrt_ns: 20_000,
        seek_linear_from: 40_000,
        seek_linear_ns: 50,
        command_ns: 0,
        interface_bytes_per_second: 1_000_000_000_000,
        lookahead_bytes: 0,
        write_cache_bytes: 0,
        flush_ns: 0,
        queued: false,
        shingles: None,
    }
}

fn set(mechanism: MechanismParameters) -> SetParameters {
    let queue = QueueParameters {
        deadline: true,
        command_bytes_max: 512 * KIB,
        read_expire_ns: 100 * SECOND,
        write_expire_ns: 100 * SECOND,
        batch_commands: 16,
        writes_starved: 2,
    };
    SetParameters { devices: 1, stripe_bytes: 64 * KIB, queue, mechanism, device_depth: 1 }
}

fn disk() -> SetParameters {
    set(MechanismParameters::Rotating(rotating()))
}

#[derive(Clone, Copy)]
struct Ask {
    file: u64,
    work: MediumWork,
    position: u64,
    len: u64,
}

fn read(position: u64, len: u64) -> Ask {
    Ask { file: 0, work: MediumWork::Read, position, len }
}

fn write(position: u64, len: u64) -> Ask {
    Ask { file: 0, work: MediumWork::Write, position, len }
}

/// A timing with requests submitted by hand.
struct Drive {
    timing: Timing,
    random: Random,
    now_ns: u64,
    asked: u64,
    /// The end of each request.
    ends: std::collections::BTreeMap<u64, u64>,
    order: Vec<u64>,
    due_ns: Option<u64>,
}

impl Drive {
    fn new(parameters: SetParameters) -> Self {
        Self {
            timing: Timing::Set(Box::new(DeviceSet::new(parameters))),
            random: Random::new(1),
            now_ns: 0,
            asked: 0,
            ends: std::collections::BTreeMap::new(),
            order: Vec::new(),
            due_ns: None,
        }
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        let spans = [Span { position: ask.position, len: ask.len }];
        let spans = if ask.len == 0 { &spans[..0] } else { &spans[..] };
        self.timing.accept(self.now_ns, self.asked, ask.file, ask.work, spans);
        self.asked += 1;
        self.due_ns = Some(self.now_ns);
        self.asked - 1
    }

    /// Proceeds to the next event.
    fn step(&mut self) -> bool {
        let Some(due_ns) = self.due_ns else { return false };
        self.now_ns = self.now_ns.max(due_ns);
        let mut events = Vec::new();
        self.due_ns = self.timing.run(self.now_ns, &mut self.random, &mut events);
        for event in events {
            if let Event::Ended(id) = event {
                assert!(self.ends.insert(id, self.now_ns).is_none(), "request {id} ended twice");
                self.order.push(id);
            }
        }
        true
    }

    /// Runs until all requests are done; returns that instant.
    fn finish(&mut self) -> u64 {
        while self.ends.len() < self.asked as usize {
            assert!(self.step(), "{} of {} requests ended", self.ends.len(), self.asked);
        }
        self.now_ns
    }

    /// Runs requests one after the other; returns the duration of each.
    fn one_by_one(&mut self, asks: impl IntoIterator<Item = Ask>) -> Vec<u64> {
        let mut times = Vec::new();
        for ask in asks {
            let from_ns = self.now_ns;
            self.ask(ask);
            times.push(self.finish() - from_ns);
        }
        times
    }
}

fn all_at_once(parameters: SetParameters, asks: &[Ask]) -> (u64, Drive) {
    let mut drive = Drive::new(parameters);
    for ask in asks {
        drive.ask(*ask);
    }
    (drive.finish(), drive)
}

/// Positions anywhere on the disk, in whole pages.
fn anywhere(seed: u64, count: usize, capacity: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.below(capacity / 4096 - 16) * 4096).collect()
}

#[test]
fn a_sequential_stream_runs_at_the_rate_of_its_zone() {
    let mut zoned = rotating();
    zoned.zones = vec![(500, RATE), (500, RATE / 2)];
    let half = zoned.capacity_bytes / 2;
    for (start, rate) in [(0, RATE), (half, RATE / 2)] {
        let mut drive = Drive::new(set(MechanismParameters::Rotating(zoned.clone())));
        // Two outstanding requests, as in readahead: 64 MiB in requests of 64 KiB.
        let (first, count, len) = (drive.ask(read(start, 4096)), 1024, 64 * KIB);
        drive.finish();
        let from_ns = drive.ends[&first];
        for at in 0..count {
            drive.ask(read(start + 4096 + at * len, len));
            while drive.ends.len() + 2 <= drive.asked as usize {
                drive.step();
            }
        }
        let ns = drive.finish() - from_ns;
        assert_eq!(ns, count * len * SECOND / rate);
        assert_eq!(drive.timing.counts().seeks, u64::from(start > 0));
    }
}

#[test]
fn a_stream_over_the_edge_of_two_zones_takes_the_sum() {
    let mut zoned = rotating();
    zoned.zones = vec![(500, RATE), (500, RATE / 2)];
    let half = zoned.capacity_bytes / 2;
    let mut drive = Drive::new(set(MechanismParameters::Rotating(zoned)));
    drive.one_by_one([read(half - 32 * KIB, 4096)]);
    let at_ns = drive.one_by_one([read(half - 28 * KIB, 60 * KIB)])[0];
    assert_eq!(at_ns, 28 * KIB * SECOND / RATE + 32 * KIB * SECOND / (RATE / 2));
}

#[test]
fn random_reads_cost_a_seek_half_a_rotation_and_the_transfer() {
    let (parameters, count) = (rotating(), 20_000);
    let positions = anywhere(7, count, parameters.capacity_bytes);
    let times = Drive::new(disk()).one_by_one(positions.iter().map(|position| read(*position, 4096)));
    let transfer_ns = 40_000;
    let (track, cylinder) = (819_200, 4 * 819_200);
    // Each request takes exactly its formula's time from the head's last position.
    let (mut head, mut now_ns, mut seeks_ns) = (0_u64, 0_u64, 0_u64);
    for (position, took_ns) in positions.iter().zip(&times) {
        let distance = (position / cylinder).abs_diff(head / cylinder);
        let curved = distance.min(40_000);
        let seek_ns = match distance {
            0 => 0,
            _ => 1_000_000 + (20_000_u128.pow(2) * u128::from(curved)).isqrt() as u64 + (distance - curved) * 50,
        };
        let angle_ns = position % track * ROTATION_NS / track;
        let wait_ns = (angle_ns + ROTATION_NS - (now_ns + seek_ns) % ROTATION_NS) % ROTATION_NS;
        let wait_ns = if *position == head { 0 } else { wait_ns };
        assert_eq!(*took_ns, seek_ns + wait_ns + transfer_ns);
        (head, now_ns, seeks_ns) = (position + 4096, now_ns + took_ns, seeks_ns + seek_ns);
    }
    // The average is half a rotation, to within four standard errors (rotation / √12 / √n).
    let mean_ns = times.iter().sum::<u64>() as f64 / count as f64;
    let expected_ns = (seeks_ns / count as u64 + ROTATION_NS / 2 + transfer_ns) as f64;
    let error_ns = ROTATION_NS as f64 / 12_f64.sqrt() / (count as f64).sqrt();
    assert!((mean_ns - expected_ns).abs() < 4.0 * error_ns, "{mean_ns} against {expected_ns}");
}

#[test]
fn two_readers_of_one_disk_pay_a_seek_for_each_turn() {
    let far = 100_000 * 819_200;
    let (count, len) = (200, 64 * KIB);
    let reader = |start: u64| (0..count).map(move |at| read(start + at * len, len));
    let alone_ns: u64 = Drive::new(disk()).one_by_one(reader(0)).iter().sum();
    let both: Vec<Ask> = reader(0).zip(reader(far)).flat_map(|(one, two)| [one, two]).collect();
    let mut drive = Drive::new(disk());
    let times = drive.one_by_one(both);
    let together_ns: u64 = times.iter().sum();
    assert_eq!(alone_ns, count * len * SECOND / RATE);
    // A seek over 25,000 cylinders there and back, and the wait for the sector. From one request of a reader to its
    // next these are whole rotations, since both positions advance by the same angle.
    let seek_ns = 1_000_000 + (20_000_u128.pow(2) * 25_000).isqrt() as u64;
    assert!(times[1..].iter().all(|ns| *ns >= seek_ns + len * SECOND / RATE));
    let pairs: Vec<u64> = times[2..].chunks(2).map(|pair| pair.iter().sum()).collect();
    let advance_ns = len * SECOND / RATE;
    assert!(pairs.iter().skip(1).all(|ns| (ns - advance_ns).is_multiple_of(ROTATION_NS)), "{pairs:?}");
    assert_eq!(drive.timing.counts().seeks, 2 * count - 1);
    assert!(together_ns > 5 * alone_ns);
}

#[test]
fn read_on_by_itself_a_disk_loses_no_rotation_between_requests() {
    let (late_ns, interface_ns) = (100_000, 4);
    let run = |lookahead_bytes| {
        let parameters = RotatingParameters { lookahead_bytes, ..rotating() };
        let mut drive = Drive::new(set(MechanismParameters::Rotating(parameters)));
        for at in 0..100 {
            drive.one_by_one([read(at * 4096, 4096)]);
            drive.now_ns += late_ns;
        }
        drive.now_ns
    };
    // Without lookahead each read begins when its sector comes round again. With it reads come from the buffer, which
    // is ahead.
    assert_eq!(run(0), 40_000 + 99 * (ROTATION_NS + 40_000) + late_ns);
    assert_eq!(run(1 << 20), 40_000 + 100 * late_ns + 99 * interface_ns);
}

#[test]
fn sorted_requests_cost_less_and_adjoining_ones_are_merged() {
    let positions = anywhere(3, 64, rotating().capacity_bytes);
    let asks: Vec<Ask> = positions.iter().map(|position| read(*position, 4096)).collect();
    let in_order_ns: u64 = Drive::new(disk()).one_by_one(asks.clone()).iter().sum();
    let (sorted_ns, drive) = all_at_once(disk(), &asks);
    // The sweep serves the oldest and all above it, then the oldest of the rest and all above that, and so on.
    let (mut left, mut sweep): (Vec<u64>, Vec<u64>) = ((0..64).collect(), Vec::new());
    while let Some(oldest) = left.first().copied() {
        let (mut ahead, behind): (Vec<u64>, Vec<u64>) =
            left.iter().partition(|at| positions[**at as usize] >= positions[oldest as usize]);
        ahead.sort_by_key(|at| positions[*at as usize]);
        sweep.extend(ahead);
        left = behind;
    }
    assert_eq!(drive.order, sweep);
    let swept = sweep.iter().map(|at| asks[*at as usize]);
    assert_eq!(Drive::new(disk()).one_by_one(swept).iter().sum::<u64>(), sorted_ns);
    assert!(sorted_ns < in_order_ns * 3 / 4, "{sorted_ns} against {in_order_ns}");

    // 256 pages in any order become two commands of 512 KiB: 254 merges.
    let mut pages: Vec<Ask> = (0..256).map(|at| write(at * 4096, 4096)).collect();
    Random::new(5).shuffle(&mut pages);
    let (_, drive) = all_at_once(disk(), &pages);
    let counts = drive.timing.counts();
    assert_eq!(counts.merges, 256 - counts.commands);
    assert_eq!(counts.command_bytes, 256 * 4096);
    let (_, drive) = all_at_once(disk(), &(0..256).map(|at| write(at * 4096, 4096)).collect::<Vec<_>>());
    assert_eq!((drive.timing.counts().merges, drive.timing.counts().commands), (254, 2));
}

#[test]
fn queued_inside_the_disk_commands_go_by_what_begins_first() {
    let parameters = SetParameters { device_depth: 31, ..disk() };
    let queued = RotatingParameters { queued: true, ..rotating() };
    let parameters = SetParameters { mechanism: MechanismParameters::Rotating(queued), ..parameters };
    let asks: Vec<Ask> = anywhere(3, 31, rotating().capacity_bytes).iter().map(|at| read(*at, 4096)).collect();
    let (sorted_ns, _) = all_at_once(disk(), &asks);
    let (queued_ns, _) = all_at_once(parameters, &asks);
    assert!(queued_ns < sorted_ns, "{queued_ns} against {sorted_ns}");
}

#[test]
fn a_stripe_set_of_five_is_five_times_one_disk() {
    let mut five = SetParameters { devices: 5, ..disk() };
    five.queue.command_bytes_max = 64 * KIB;
    let asks: Vec<Ask> = (0..64).map(|at| write(at * 5 * 64 * KIB, 5 * 64 * KIB)).collect();
    let (one_ns, _) = all_at_once(disk(), &asks);
    let (five_ns, drive) = all_at_once(five, &asks);
    assert_eq!(one_ns, 64 * 5 * 64 * KIB * SECOND / RATE);
    assert_eq!(five_ns, one_ns / 5);
    assert_eq!(drive.timing.counts().commands, 5 * 64);
}

#[test]
fn a_write_cache_answers_at_the_interface_and_a_flush_waits_for_the_medium() {
    let cached = RotatingParameters {
        write_cache_bytes: 1 << 20,
        interface_bytes_per_second: 409_600_000,
        flush_ns: 77,
        ..rotating()
    };
    let mut drive = Drive::new(set(MechanismParameters::Rotating(cached)));
    assert_eq!(drive.one_by_one([write(0, 64 * KIB)]), [160_000]);
    // The write began at 160 µs; the head is at angle 0 again after a rotation.
    let flush = drive.ask(Ask { work: MediumWork::Flush, len: 0, ..write(0, 0) });
    drive.finish();
    assert_eq!(drive.ends[&flush], ROTATION_NS + 640_000 + 77);
    // The disk takes a stream at the interface's rate until the cache is full, then at the medium's.
    let from_ns = drive.now_ns;
    (0..256).for_each(|at| {
        drive.ask(write((1 + at) * 64 * KIB, 64 * KIB));
    });
    let took_ns = drive.finish() - from_ns;
    let medium_ns = 256 * 640_000;
    assert!((medium_ns - 17 * 640_000..=medium_ns + 2 * ROTATION_NS).contains(&took_ns), "{took_ns}");
}

#[test]
fn a_shingled_disk_is_ten_times_slower_once_its_zone_is_full() {
    let shingles = ShingleParameters { cache_bytes: 8 << 20, cleaning_factor: 10, idle_ns: SECOND };
    let parameters = RotatingParameters { shingles: Some(shingles), ..rotating() };
    let mut drive = Drive::new(set(MechanismParameters::Rotating(parameters)));
    let asks: Vec<Ask> = (0..24).map(|at| write((100 - at) << 22, 512 * KIB)).collect();
    for ask in asks {
        drive.ask(ask);
        drive.step();
    }
    drive.finish();
    // 16 requests fit. They are appended to the zone at any position.
    let mut sorted: Vec<u64> = drive.ends.values().copied().collect();
    sorted.sort_unstable();
    assert_eq!(sorted[0], 5_120_000);
    assert_eq!(sorted[15], 16 * 5_120_000);
    assert!(sorted.windows(2).skip(16).all(|pair| pair[1] - pair[0] == 10 * 5_120_000), "{sorted:?}");
    // A pause empties the zone, at a ninth of the rate.
    drive.now_ns += 11 * SECOND;
    let before_ns = drive.now_ns;
    drive.ask(write(900 << 20, 512 * KIB));
    assert!(drive.finish() - before_ns < 5_120_000 + 2 * ROTATION_NS + 10_000_000);
}

#[test]
fn a_card_pays_for_blocks_as_they_are_opened_closed_and_skipped_in() {
    let parameters = CardParameters {
        erase_block_bytes: 64 * KIB,
        open_blocks: 2,
        page_bytes: 4096,
        read_bytes_per_second: 4096 * 10_000,
        write_bytes_per_second: 4096 * 1000,
        copy_bytes_per_second: 4096 * 2000,
        erase_ns: 7,
        command_ns: 1,
    };
    let block = 64 * KIB;
    let mut drive = Drive::new(set(MechanismParameters::Card(parameters)));
    let (page_ns, copy_ns) = (1_000_000, 500_000);
    let times = drive.one_by_one([
        read(0, 4096),
        write(0, 4096),                 // opens block 0 at its start
        write(4096, 8192),              // goes on
        write(3 * 4096 + 512, 512),     // skips 512 bytes; a page is programmed
        write(block + 8192, 4096),      // opens block 1: two pages before it are copied
        write(2 * block, 4096),         // closes block 0: 12.75 pages are copied
        write(block, 4096),             // back in block 1: 13 pages copied, begun anew
        write(block + 4096, 15 * 4096), // to its end: erased, nothing copied
        write(2 * block + 4096, 15 * 4096),
        write(5 * block, 2 * block), // two whole blocks
    ]);
    let gap_ns = 512 * SECOND / (4096 * 2000);
    let expected = [
        100_000,
        page_ns,
        2 * page_ns,
        page_ns + gap_ns,
        page_ns + 2 * copy_ns,
        page_ns + 12 * copy_ns + copy_ns * 3 / 4 + 7,
        page_ns + 13 * copy_ns + 7,
        15 * page_ns + 7,
        15 * page_ns + 7,
        2 * (16 * page_ns + 7),
    ];
    assert_eq!(times, expected.map(|ns| ns + 1));
    assert_eq!(drive.timing.counts().seeks, 2);
}

fn flash() -> ChannelParameters {
    ChannelParameters {
        dies: 4,
        page_bytes: 4096,
        pages_per_block: 8,
        read_ns: 10_000,
        program_ns: 100_000,
        erase_ns: 1_000_000,
        copies_per_mille: 500,
        fresh_bytes: 0,
        interface_bytes_per_second: 4_096_000_000,
        command_ns: 0,
        memory_bytes: 0,
        flush_ns: 0,
    }
}

fn flash_set(parameters: ChannelParameters) -> SetParameters {
    let mut set = SetParameters { device_depth: 64, ..set(MechanismParameters::Channels(parameters)) };
    set.queue.deadline = false;
    set
}

#[test]
fn flash_dies_work_side_by_side() {
    // One die after the other: a page's read and its time on the interface.
    let mut drive = Drive::new(flash_set(flash()));
    assert_eq!(drive.one_by_one((0..4).map(|at| read(at * 4096, 4096))), [11_000; 4]);
    // Four at once share only the interface.
    let (ns, _) = all_at_once(flash_set(flash()), &[0, 1, 2, 3].map(|at| read(at * 4096, 4096)));
    assert_eq!(ns, 10_000 + 4 * 1000);
    // Eight pages of one die take that die's time.
    let (ns, _) = all_at_once(flash_set(flash()), &[0; 8].map(|_| read(0, 4096)));
    assert_eq!(ns, 8 * 10_000 + 1000);
}

#[test]
fn flash_stalls_for_garbage_collection_after_each_block() {
    // Sequential: 16 pages a die fill two blocks, whatever the die's start within a block.
    let mut drive = Drive::new(flash_set(flash()));
    let times = drive.one_by_one((0..64).map(|at| write(at * 4096, 4096)));
    // A die's stall shows in its next page, four requests later.
    assert_eq!(drive.timing.counts().seeks, 2 * 4);
    let stalled: Vec<u64> = times.iter().copied().filter(|ns| *ns > 101_000).collect();
    assert_eq!(stalled, [1_100_000 - 3 * 101_000; 7], "one is still to come");
    // At random half of the 8 pages is copied as well.
    let mut drive = Drive::new(flash_set(ChannelParameters { dies: 1, ..flash() }));
    let times = drive.one_by_one((0..17).map(|at| write(at * 8192 + 4096, 4096)));
    assert_eq!(times[7], 101_000);
    assert_eq!(times[8], 1_000_000 + 4 * 110_000 + 100_000);
    assert_eq!(times[16], times[8]);
}

#[test]
fn flash_memory_answers_at_once_until_it_is_full_and_a_flush_empties_it() {
    let parameters = ChannelParameters { memory_bytes: 8 * 4096, fresh_bytes: 1 << 30, flush_ns: 5, ..flash() };
    let mut drive = Drive::new(flash_set(parameters));
    let times = drive.one_by_one((0..8).map(|at| write(at * 4096, 4096)));
    assert_eq!(times, [1000; 8]);
    let flush = drive.ask(Ask { work: MediumWork::Flush, len: 0, ..write(0, 0) });
    drive.finish();
    // Two pages a die, the last of which arrived at 8 µs on a die that was busy from 4 µs.
    assert_eq!(drive.ends[&flush], 4000 + 200_000 + 5);
    // A stream settles at four pages in the time of a program.
    let from_ns = drive.now_ns;
    (0..400).for_each(|at| {
        drive.ask(write((8 + at) * 4096, 4096));
    });
    let took_ns = drive.finish() - from_ns;
    let expected_ns = (400 - 8) / 4 * 100_000;
    assert!(took_ns.abs_diff(expected_ns) <= 2 * 100_000, "{took_ns} against {expected_ns}");
}

/// 25 MB/s in slices of 25 ticks of 4 ms, as in a kernel with 250 ticks a second.
fn throttle() -> SetParameters {
    let parameters = ThrottleParameters {
        read_bytes_per_second: 25_000_000,
        write_bytes_per_second: 25_000_000,
        tick_ns: 4_000_000,
        slice_ns: 100_000_000,
        latency_ns: 75_000,
        below_bytes_per_second: 1 << 30,
        flush_ns: 60_000,
        journal_bytes: 20 * KIB,
        commit_bytes: 4 * KIB,
    };
    let mut parameters = SetParameters { device_depth: 1000, ..set(MechanismParameters::Throttled(parameters)) };
    parameters.queue.deadline = false;
    parameters
}

/// The time of a MiB once it has passed the throttle.
const BELOW_NS: u64 = 75_000 + 1_000_000_000 / 1024;

#[test]
fn a_throttle_counts_bytes_by_slices_of_ticks() {
    let mut drive = Drive::new(throttle());
    let ids: Vec<u64> = (0..8).map(|at| drive.ask(write(at * MIB, MIB))).collect();
    let other = drive.ask(read(0, MIB));
    drive.finish();
    // The first two requests are within the first slice's 2.5 MB. The third is 645,728 bytes over. It waits for 6 ticks
    // beyond the slice, and for one more since the timer is late. The second slice, begun by then, suffices for the
    // fourth. The fifth is 242,880 bytes over two slices and waits until tick 50 + 2 + 1. Two slices are over by then,
    // and the first is dropped with its bytes. The eighth is 888,608 bytes over the rest and waits until tick 75 + 8 +
    // 1.
    let passed: Vec<u64> = ids.iter().map(|id| (drive.ends[id] - BELOW_NS) / 1_000_000).collect();
    assert_eq!(passed, [0, 0, 128, 128, 212, 212, 212, 336]);
    assert_eq!(drive.ends[&other], BELOW_NS, "reads have a budget of their own");
}

#[test]
fn a_throttle_keeps_the_rate_over_time_and_forgets_idle_slices() {
    let mut drive = Drive::new(throttle());
    let count = 240;
    (0..count).for_each(|at| {
        drive.ask(write(at * MIB, MIB));
    });
    drive.finish();
    let rate = u128::from(count * MIB) * 1_000_000_000 / u128::from(drive.now_ns);
    assert!((24_900_000..25_300_000).contains(&rate), "{rate}");
    // After an idle time longer than the slices, the next burst is one slice's and no more.
    drive.now_ns += 10 * SECOND;
    let from_ns = drive.now_ns;
    let ids: Vec<u64> = (0..4).map(|at| drive.ask(write(at * MIB, MIB))).collect();
    drive.finish();
    let at_once = ids.iter().filter(|id| drive.ends[*id] - from_ns < 2_000_000).count();
    assert_eq!(at_once, 2);
}

#[test]
fn a_flush_behind_a_throttle_waits_its_turn_among_the_writes_and_logs_what_grew() {
    let mut drive = Drive::new(throttle());
    // Alone, a flush takes only the device's own time.
    let flush = drive.ask(Ask { work: MediumWork::Flush, ..read(0, 0) });
    drive.finish();
    assert_eq!(drive.ends[&flush], 60_000);
    let from_ns = drive.now_ns;
    let commit = drive.ask(Ask { work: MediumWork::Commit, ..read(0, 0) });
    drive.finish();
    let below = |bytes: u64| 75_000 + transfer_ns(bytes, 1 << 30);
    assert_eq!(drive.ends[&commit] - from_ns, below(20 * KIB) + below(4 * KIB) + 2 * 60_000);
    // A flush waits behind the waiting writes; a read does not wait for it.
    let from_ns = drive.now_ns;
    let writes: Vec<u64> = (0..3).map(|at| drive.ask(write(at * MIB, MIB))).collect();
    drive.step();
    let flush = drive.ask(Ask { work: MediumWork::Flush, ..read(0, 0) });
    drive.step();
    let other = drive.ask(read(0, MIB));
    drive.finish();
    assert!(drive.ends[&flush] >= drive.ends[&writes[2]] - BELOW_NS && drive.ends[&flush] - from_ns > 100_000_000);
    assert_eq!(drive.ends[&other] - from_ns, BELOW_NS);
}

#[test]
fn an_object_store_is_slow_and_wide() {
    let parameters = StoreParameters {
        read_latency_ns: 100_000_000,
        write_latency_ns: 150_000_000,
        spread_per_mille: 0,
        tail_per_mille: 0,
        connection_bytes_per_second: 100_000_000,
        link_bytes_per_second: 1_000_000_000,
    };
    let mut parameters = SetParameters { device_depth: 64, ..set(MechanismParameters::Store(parameters)) };
    parameters.queue.deadline = false;
    let len = 1_000_000;
    let mut drive = Drive::new(parameters.clone());
    assert_eq!(drive.one_by_one([read(0, len), write(0, len)]), [110_000_000, 160_000_000]);
    // Ten calls run side by side. Sixty are limited by the link.
    let asks: Vec<Ask> = (0..60).map(|at| read(at * len, len)).collect();
    assert_eq!(all_at_once(parameters.clone(), &asks[..10]).0, 110_000_000);
    assert_eq!(all_at_once(parameters, &asks).0, 160_000_000);
}

#[test]
fn holes_and_changes_of_names_cost_nothing_of_the_medium() {
    let mut drive = Drive::new(disk());
    let times = drive.one_by_one([read(0, 0), Ask { work: MediumWork::Memory, ..read(0, 0) }]);
    assert_eq!(times, [5000; 2]);
    assert_eq!(drive.timing.counts(), Counts::default());
}

#[test]
fn a_late_call_changes_nothing_for_what_was_queued_in_time() {
    let asks: Vec<Ask> = anywhere(9, 40, rotating().capacity_bytes).iter().map(|at| write(*at, 8192)).collect();
    let (on_time_ns, _) = all_at_once(disk(), &asks);
    let mut drive = Drive::new(disk());
    asks.iter().for_each(|ask| {
        drive.ask(*ask);
    });
    while drive.ends.len() < asks.len() {
        drive.now_ns += 3_333_333;
        drive.step();
    }
    assert!((on_time_ns..on_time_ns + 2 * 3_333_333 + 20_000_000).contains(&drive.now_ns));
    assert!(drive.now_ns - on_time_ns <= 20_000_000, "{} {on_time_ns}", drive.now_ns);
}
