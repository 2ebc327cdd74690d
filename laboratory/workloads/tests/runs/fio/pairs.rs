//! Pairs of options against real fio: patterns and sizes with loops, counts, amounts and syncs.
//!
//! The system calls for syncs are counted by strace, since fio counts no `fdatasync` and no closing sync.

use super::real;
use super::{Host, compare_whole, jobs_directory, parse, simulate};

const PATTERNS: [&str; 7] = [
    "rw=read\nbs=4k",
    "rw=write\nbs=4k",
    "rw=randread\nbs=8k",
    "rw=randwrite\nbs=4k",
    "rw=write\nbs=4k,16k",
    "rw=rw\nbs=4k\nrwmixread=0",
    "rw=randrw\nbs=4k\nrwmixread=60",
];

const AMOUNTS: [&str; 8] = [
    "",
    "loops=3",
    "loops=4\nnumber_ios=100",
    "loops=2\nio_size=1500k",
    "loops=3\nio_size=300k",
    "loops=2\nnumber_ios=300\nio_size=2m",
    "io_size=2500k",
    "number_ios=77\nio_size=3m",
];

const SYNCS: [&str; 4] = ["", "fsync=8", "fdatasync=7", "end_fsync=1"];

/// Every pattern with every amount, and each of those with one kind of sync, alternately.
fn jobs() -> String {
    let mut text = "[global]\nsize=1m\ncreate_fsync=0\n".to_owned();
    for (row, pattern) in PATTERNS.iter().enumerate() {
        for (column, amount) in AMOUNTS.iter().enumerate() {
            let sync = SYNCS[(row + column + column / SYNCS.len()) % SYNCS.len()];
            text.push_str(&format!("[j{row}-{column}]\nstonewall\n{pattern}\n{amount}\n{sync}\n"));
        }
    }
    text
}

#[test]
fn pairs_of_options_move_and_sync_what_fio_moves_and_syncs() {
    if !real::is_installed() {
        return;
    }
    let text = jobs();
    let parsed = parse("pairs.fio", &text, &mut Host { directory: jobs_directory() }).expect("the jobs are right");
    let Some((real, syncs)) = real::run_traced(&text) else { return };
    let ours = simulate(parsed.jobs.clone());
    assert_eq!((real.len(), ours.len()), (parsed.jobs.len(), parsed.jobs.len()));
    let (mut full, mut data_only) = (0, 0);
    for ((job, real), ours) in parsed.jobs.iter().zip(real).zip(&ours) {
        full += ours.closing_sync.ops;
        if job.fdatasync_every > 0 {
            data_only += ours.sync.ops;
        } else {
            full += ours.sync.ops;
        }
        // fio counts `fsync` alone.
        let syncs = if job.fdatasync_every > 0 { ours.sync.ops } else { real.syncs };
        let is_mixed = job.pattern.reads && job.pattern.writes && job.mix_read_percent > 0;
        let real = real::RealJob { syncs, ..real };
        compare_whole("pairs.fio", job, &real, ours);
        if is_mixed {
            // The number of writes is a matter of chance, and the number of syncs with it.
            continue;
        }
        assert_eq!(real.syncs, ours.sync.ops, "{}: {real:?}, and simulated {ours:?}", job.name);
    }
    // Only the mixed jobs differ: by the chance of a few writes more or less for each.
    let mixed: u64 = 8 * 12;
    assert!(syncs.0.abs_diff(full) <= mixed, "{} fsyncs, and simulated {full}", syncs.0);
    assert!(syncs.1.abs_diff(data_only) <= mixed, "{} fdatasyncs, and simulated {data_only}", syncs.1);
}

/// Calls in sequence with holes between them, in parts of files and to their exact ends.
const HOLES: [&str; 13] = [
    "rw=read:4k\nsize=1m",
    "rw=read:4k\nsize=1m\noffset=100k",
    "rw=write:4k\nsize=1m\noffset=1m",
    "rw=read:8k\nsize=1m",
    "rw=write:8k\nsize=1000k\nloops=2",
    "rw=read:8k\nsize=1m\nio_size=3m",
    "rw=read:16k\nsize=100k\noffset=4k",
    "rw=write:16k\nsize=92k\noffset=4k",
    "rw=read:64k\nsize=100k\noffset=8k",
    "rw=write:64k\nsize=68k\noffset=4k",
    "rw=read:4k\nsize=1m\noffset=100k\nloops=3",
    "rw=read:4k\nsize=1m\nnrfiles=2\noffset=4k",
    "rw=read:-8k\nsize=1m\noffset=64k",
];

#[test]
fn holes_between_calls_end_a_pass_where_fio_ends_it() {
    if !real::is_installed() {
        return;
    }
    let jobs = HOLES.iter().enumerate().map(|(at, options)| format!("[h{at}]\nstonewall\n{options}\n"));
    let text = format!("[global]\nbs=4k\ncreate_fsync=0\n{}", jobs.collect::<String>());
    let parsed = parse("holes.fio", &text, &mut Host { directory: jobs_directory() }).expect("the jobs are right");
    let Some((real, _)) = real::run_traced(&text) else { return };
    let ours = simulate(parsed.jobs.clone());
    assert_eq!((real.len(), ours.len()), (HOLES.len(), HOLES.len()));
    for ((options, real), ours) in HOLES.iter().zip(real).zip(&ours) {
        let own = [ours.read.bytes, ours.write.bytes];
        assert_eq!(own, [real.bytes[0], real.bytes[1]], "{options:?}: ours, and fio's");
    }
}

#[test]
fn random_calls_whose_sizes_differ_by_direction_are_warned_of() {
    let is_warned = |options: &str| {
        let text = format!("[x]\nsize=1m\n{options}\n");
        let parsed = parse("test.fio", &text, &mut Host { directory: jobs_directory() }).expect("right");
        parsed.warnings.iter().any(|warning| warning.to_string().contains("in random order"))
    };
    for options in ["rw=randrw\nbs=4k,16k", "rw=randwrite\nbs=4k,16k", "rw=randread\nbs=16k,4k"] {
        assert!(is_warned(options), "{options}");
    }
    for options in
        ["rw=randrw\nbs=4k", "rw=rw\nbs=4k,16k", "rw=randread\nbs=4k,16k", "rw=randrw\nbs=4k,16k\nnorandommap=1"]
    {
        assert!(!is_warned(options), "{options}");
    }
}

#[test]
fn a_due_sync_between_calls_in_flight_is_warned_of_with_its_factor() {
    let warnings = |options: &str| {
        let text = format!("[x]\nsize=1m\nrw=write\n{options}\n");
        let parsed = parse("test.fio", &text, &mut Host { directory: jobs_directory() }).expect("right");
        parsed.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for options in ["ioengine=posixaio\niodepth=4\nfsync=8", "ioengine=io_uring\niodepth=4\nfdatasync=8"] {
        assert!(warnings(options).contains("up to 4 times as many"), "{options}: {}", warnings(options));
    }
    for options in [
        "iodepth=4\nfsync=8",
        "ioengine=posixaio\nfsync=8",
        "ioengine=io_uring\niodepth=4",
        "ioengine=libaio\niodepth=4\nfsync=8\ndirect=1",
    ] {
        assert!(!warnings(options).contains("times as many"), "{options}: {}", warnings(options));
    }
    if !real::is_installed() {
        return;
    }
    let text = "[x]\nsize=1m\nrw=write\ncreate_fsync=0\nioengine=posixaio\niodepth=4\nfsync=8\n";
    let Some((real, _)) = real::run_traced(text) else { return };
    assert!((31 * 2..=31 * 4 + 4).contains(&real[0].syncs), "{real:?}");
}
