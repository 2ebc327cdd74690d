use super::*;
use crate::fio::job_of;
use crate::shares::shares;

fn sequence(job: &Job) -> Sequence {
    let mut random = Random::new(5);
    let shares = shares(job, 0, &vec![None; job.files as usize], &mut random);
    Sequence::new(job, &shares, random)
}

/// An operation: a block with its direction, or a sync of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Moved(Direction, Block),
    Synced(usize, bool),
}

fn steps(options: &str, steps_max: usize) -> Vec<Step> {
    let mut sequence = sequence(&job_of(options));
    let mut steps = Vec::new();
    loop {
        while !sequence.is_done() && steps.len() < steps_max {
            if let Some(data_only) = sequence.sync_due() {
                steps.extend(sequence.sync().map(|file| Step::Synced(file, data_only)));
                continue;
            }
            let direction = sequence.direction();
            let Some(block) = sequence.block(direction) else { break };
            steps.push(Step::Moved(direction, block));
        }
        if steps.len() >= steps_max || !sequence.next_loop() {
            return steps;
        }
    }
}

/// Bytes and blocks read, bytes and blocks written, syncs.
fn totals(options: &str) -> [u64; 5] {
    let mut totals = [0; 5];
    for step in steps(options, 100_000) {
        match step {
            Step::Moved(direction, block) => {
                totals[direction as usize * 2] += block.len;
                totals[direction as usize * 2 + 1] += 1;
            }
            Step::Synced(..) => totals[4] += 1,
        }
    }
    totals
}

fn blocks(options: &str, steps_max: usize) -> Vec<(usize, u64, u64)> {
    let moved = steps(options, steps_max).into_iter().filter_map(|step| match step {
        Step::Moved(_, block) => Some((block.file, block.offset, block.len)),
        Step::Synced(..) => None,
    });
    moved.collect()
}

#[test]
fn totals_are_those_that_fio_had() {
    // Each was observed with fio 3.33.
    for (options, totals_seen) in [
        ("rw=write size=10000", [0, 0, 8192, 2, 0]),
        ("rw=write size=100k nrfiles=3", [0, 0, 98304, 24, 0]),
        ("rw=write size=1m fsync=10", [0, 0, 1 << 20, 256, 25]),
        ("rw=write size=1m fsync=16", [0, 0, 1 << 20, 256, 15]),
        ("rw=write size=1m fsync=1", [0, 0, 1 << 20, 256, 255]),
        ("rw=randread size=1m bs=8k", [1 << 20, 128, 0, 0, 0]),
        ("rw=randwrite size=1000k bs=64k", [0, 0, 983_040, 15, 0]),
        ("rw=randwrite size=1m bs=3000", [0, 0, 1_047_000, 349, 0]),
        ("rw=randread size=1m random_distribution=zipf:1.2", [1 << 20, 256, 0, 0, 0]),
        ("rw=write filesize=64k nrfiles=3", [0, 0, 196_608, 48, 0]),
        ("rw=write filesize=64k size=100k nrfiles=3", [0, 0, 102_400, 25, 0]),
        ("rw=write filesize=64k size=1m", [0, 0, 65536, 16, 0]),
        ("rw=write size=50% filesize=1m", [0, 0, 524_288, 128, 0]),
        ("rw=write size=256k filename=a:b nrfiles=1", [0, 0, 262_144, 64, 0]),
        ("rw=write size=100k nrfiles=50", [0; 5]),
        ("rw=write size=32k bs=4k,64k", [0; 5]),
        ("rw=rw size=1m rwmixread=100", [1 << 20, 256, 0, 0, 0]),
        ("rw=rw size=1m rwmixread=0", [0, 0, 1 << 20, 256, 0]),
    ] {
        assert_eq!(totals(options), totals_seen, "{options}");
    }
}

#[test]
fn files_take_turns_and_so_do_syncs() {
    // fio 3.33's operations, observed with strace.
    use Direction::Write;
    let moved = |file, offset| Step::Moved(Write, Block { file, offset, len: 4096 });
    let seen = steps("rw=write size=24k nrfiles=2 fsync=1", 100);
    let expected = [
        moved(0, 0),
        Step::Synced(1, false),
        moved(0, 4096),
        Step::Synced(1, false),
        moved(0, 8192),
        Step::Synced(1, false),
        moved(1, 0),
        Step::Synced(1, false),
        moved(1, 4096),
        Step::Synced(1, false),
        moved(1, 8192),
    ];
    assert_eq!(seen, expected);
    let seen = blocks("rw=read size=32k nrfiles=2", 100);
    assert_eq!(seen[..4], [(0, 0, 4096), (1, 0, 4096), (0, 4096, 4096), (1, 4096, 4096)]);
}

#[test]
fn writes_are_counted_for_syncs_and_looked_at_after_reads_too() {
    let seen = steps("rw=rw size=1m fsync=4 rwmixread=50", 100_000);
    let mut writes = 0;
    for pair in seen.windows(2) {
        writes += u64::from(matches!(pair[0], Step::Moved(Direction::Write, _)));
        let due = writes > 0 && writes % 4 == 0 && !matches!(pair[0], Step::Synced(..));
        assert_eq!(matches!(pair[1], Step::Synced(..)), due, "{pair:?} after {writes} writes");
    }
    let seen = steps("rw=write size=1m fsync=10 fdatasync=16", 100_000);
    let count =
        |data_only| seen.iter().filter(|step| matches!(step, Step::Synced(_, only) if *only == data_only)).count();
    assert_eq!((count(false), count(true)), (25, 15 - 3), "both at once are one fsync");
}

#[test]
fn random_blocks_come_once_each_and_in_no_order() {
    for options in [
        "rw=randwrite size=1m",
        "rw=randrw size=1m",
        "rw=randread size=1m bsrange=4k-64k",
        "rw=randrw size=1m bs=4k,16k",
    ] {
        let seen = blocks(options, 100_000);
        let mut touched = vec![false; 256];
        for (_, offset, len) in &seen {
            assert!(offset % 4096 == 0 && len % 4096 == 0 && offset + len <= 1 << 20, "{options}");
            for page in offset / 4096..(offset + len) / 4096 {
                assert!(!std::mem::replace(&mut touched[page as usize], true), "{options}: page {page} twice");
            }
        }
        assert!(!touched.contains(&false), "{options}");
        let ordered = seen.windows(2).filter(|pair| pair[0].1 < pair[1].1).count();
        assert!(
            ordered * 10 > seen.len() * 2 && ordered * 10 < seen.len() * 8,
            "{options}: {ordered} of {}",
            seen.len()
        );
    }
}

#[test]
fn a_range_of_block_sizes_is_used_whole() {
    let seen = blocks("rw=read size=16m bsrange=4k-64k", 100_000);
    let mut position = 0;
    for (_, offset, len) in &seen {
        assert_eq!(*offset, position);
        assert!(len % 4096 == 0 && (4096..=65536).contains(len));
        position += len;
    }
    assert_eq!(position, 16 << 20);
    for len in (4096..=65536).step_by(4096) {
        assert!(seen.iter().any(|block| block.2 == len), "{len} never came up");
    }
}

#[test]
fn a_mix_has_its_share_of_reads() {
    let [read, reads, written, writes, _] = totals("rw=randrw size=40m rwmixread=70");
    assert_eq!((read + written, reads + writes), (40 << 20, 10240));
    assert!((6900..7430).contains(&reads), "{reads} of 10240 are reads");
}

#[test]
fn zipf_has_favourites() {
    let seen = blocks("rw=randread filesize=16m size=16m random_distribution=zipf:1.2", 100_000);
    let mut counts = std::collections::BTreeMap::new();
    for block in &seen {
        *counts.entry(block.1).or_insert(0_u64) += 1;
    }
    let most = counts.values().max().copied().unwrap_or(0);
    assert!(most > 600 && counts.len() < 2000, "the most seen of {} blocks came {most} times", counts.len());
}

#[test]
fn time_based_jobs_begin_again() {
    let seen = blocks("rw=write size=12k time_based runtime=1", 8);
    let offsets: Vec<u64> = seen.iter().map(|block| block.1 / 4096).collect();
    assert_eq!(offsets, [0, 1, 2, 0, 1, 2, 0, 1]);
    let mut seen = blocks("rw=randwrite size=12k time_based runtime=1", 9);
    seen.chunks_mut(3).for_each(<[_]>::sort_unstable);
    assert_eq!(seen.iter().map(|block| block.1 / 4096).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(blocks("rw=read size=16k nrfiles=2 time_based runtime=1", 50).len(), 50);
    assert_eq!(blocks("rw=write size=100k nrfiles=50 time_based runtime=1", 50).len(), 0, "no block fits: it ends");
    let job = job_of("rw=write size=12k time_based runtime=1");
    let mut sequence = sequence(&job);
    let rewound: Vec<_> = (0..5)
        .map(|_| {
            sequence.block(Direction::Write);
            sequence.take_rewound().len()
        })
        .collect();
    assert_eq!(rewound, [0, 0, 0, 1, 0], "told once a round");
}

#[test]
fn loops_sizes_and_counts_end_a_job_where_they_say() {
    for (options, totals_seen) in [
        ("rw=write size=1m number_ios=5", [0, 0, 20480, 5, 0]),
        ("rw=read size=1m io_size=64k", [65536, 16, 0, 0, 0]),
        ("rw=read size=64k io_size=1m", [1 << 20, 256, 0, 0, 0]),
        ("rw=randread size=64k io_size=256k", [262_144, 64, 0, 0, 0]),
        ("rw=randread size=64k io_size=50%", [32768, 8, 0, 0, 0]),
        ("rw=read size=16k offset=8k", [16384, 4, 0, 0, 0]),
        ("rw=read filesize=16k offset=8k", [8192, 2, 0, 0, 0]),
        ("rw=randread size=1m bs=4k norandommap", [1 << 20, 256, 0, 0, 0]),
    ] {
        assert_eq!(totals(options), totals_seen, "{options}");
    }
    let twice = sequence(&job_of("rw=write size=16k loops=2"));
    assert_eq!(twice.total_bytes(), 32768);
}

#[test]
fn loops_multiply_sizes_and_counts_and_go_over_the_files_again() {
    // Each was observed with fio 3.33.
    for (options, totals_seen) in [
        ("rw=write size=16k loops=2", [0, 0, 32768, 8, 0]),
        ("rw=read size=1m loops=4 number_ios=100", [1_638_400, 400, 0, 0, 0]),
        ("rw=write size=1m loops=3 number_ios=100 fsync=8", [0, 0, 1_228_800, 300, 38]),
        ("rw=read size=1m loops=3 io_size=2m", [3 << 20, 768, 0, 0, 0]),
        ("rw=read size=1m loops=3 io_size=512k", [1_572_864, 384, 0, 0, 0]),
        ("rw=write size=1m loops=3 io_size=512k fsync=10", [0, 0, 1_572_864, 384, 38]),
        ("rw=write size=1m loops=2 io_size=1500k", [0, 0, 2 << 20, 512, 0]),
        ("rw=write size=1m loops=2 number_ios=300 io_size=2m", [0, 0, 2 << 20, 512, 0]),
        ("rw=read size=1m loops=2 number_ios=300", [2 << 20, 512, 0, 0, 0]),
        ("rw=randwrite size=1m loops=3 number_ios=100 fdatasync=7", [0, 0, 1_228_800, 300, 42]),
    ] {
        assert_eq!(totals(options), totals_seen, "{options}");
    }
}

#[test]
fn files_are_served_as_asked() {
    let order = |options: &str| blocks(options, 60).iter().map(|block| block.0).collect::<Vec<_>>();
    assert_eq!(
        order("rw=read size=64k nrfiles=2 file_service_type=roundrobin:3")[..12],
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    );
    assert_eq!(order("rw=read size=24k nrfiles=2 file_service_type=sequential"), [0, 0, 0, 1, 1, 1]);
    assert_eq!(order("rw=read size=32k nrfiles=4 openfiles=2"), [0, 1, 0, 1, 2, 3, 2, 3]);
    let random = order("rw=read size=1m nrfiles=4 file_service_type=random");
    assert!((0..4).all(|file| random.contains(&file)) && random[..8] != [0, 1, 2, 3, 0, 1, 2, 3], "{random:?}");
}
