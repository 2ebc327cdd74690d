//! Inputs that fio rejects are rejected here.

use super::real;
use super::{Host, parse};

/// Options that fio refuses, each in a job that is valid without it.
const REFUSED: &[&str] = &[
    "nosuch=5",
    "nosuch",
    "SIZE=1m",
    "siz=1m",
    "runtime:5",
    "=5",
    "size",
    "size=",
    "size=abc",
    "size=99999999999999999999",
    "bs=0",
    "bsrange=4k",
    "rwmixread=101",
    "rwmixread=",
    "rw=bogus",
    "rw= read",
    "direct",
    "direct=2",
    "direct=yes",
    "end_fsync",
    "end_fsync=5",
    "filesize=0",
    "kb_base=3",
    "random_distribution=uniform",
    "random_distribution=zipf:1",
    "random_distribution=zipf:abc",
    "thinktime=",
    "runtime=",
    "filename=",
    "directory=",
    "group_reporting=",
    "bs=${AFFLUX_TEST_UNSET}k",
];

/// Jobs that fio parses and does not run.
const NOT_RUN: &[&str] =
    &["size=1m\nrate=1m\nrate_iops=100", "bs=4k", "size=0", "size=50%", "size=1k", "size=1m\nnumjobs=0"];

/// Options that fio accepts and partly ignores, or cannot carry out: errors here.
const MISREAD: &[&str] =
    &["size=1.5m", "size= 1m", "size=1 m", "runtime=10sec", "runtime=1.5", "bs=0x1000k", "size=1x", "numjobs=-1"];

fn ours(text: &str) -> Result<(), String> {
    let mut host = Host { directory: super::jobs_directory() };
    parse("test.fio", text, &mut host).map(|_| ()).map_err(|complaint| complaint.to_string())
}

#[test]
fn what_fio_rejects_is_rejected() {
    let scratch = real::is_installed().then(|| real::scratch("rejected"));
    let job = |option: &str| format!("[x]\nsize=1m\nrw=write\n{option}\n");
    let whole = ["size=1m\n[x]\n"].map(str::to_owned);
    for text in REFUSED.iter().map(|option| job(option)).chain(whole) {
        assert!(ours(&text).is_err(), "accepted: {text}");
        if let Some(scratch) = &scratch {
            std::fs::write(scratch.path().join("test.fio"), &text).expect("writes");
            assert!(real::accepts(scratch.path(), "test.fio").is_err(), "fio accepts {text}");
        }
    }
}

#[test]
fn what_fio_does_not_run_is_rejected() {
    let scratch = real::is_installed().then(|| real::scratch("not-run"));
    for options in NOT_RUN {
        let text = format!("[x]\nrw=write\n{options}\n");
        assert!(ours(&text).is_err(), "accepted: {text}");
        if let Some(scratch) = &scratch {
            std::fs::write(scratch.path().join("test.fio"), &text).expect("writes");
            assert!(!real::runs(scratch.path(), "test.fio"), "fio runs {text}");
        }
    }
}

/// Values of each kind with a tail that no version knows.
const TAILS: &[&str] = &[
    "bs=4kx",
    "bsrange=4k-8kx",
    "bssplit=4k/50x:8k/50",
    "bs=0x1000k",
    "io_size=1mx",
    "filesize=1m-2mx",
    "offset=4kx",
    "number_ios=5x",
    "loops=2x",
    "iodepth=4x",
    "numjobs=1x",
    "nrfiles=2x",
    "fsync=8x",
    "rwmixread=50%",
    "percentage_random=5x",
    "rate=5mx",
    "rate_iops=5x",
    "thinktime_blocks=5x",
    "verify_backlog=8x",
    "log_avg_msec=5x",
    "runtime=5sec",
    "startdelay=1foo",
    "startdelay=1s-2foo",
    "ramp_time=5foo",
    "thinktime=5foo",
    "thinktime_spin=5foo",
    "rate_cycle=5foo",
];

#[test]
fn what_is_said_of_fio_about_a_tail_is_so() {
    let scratch = real::is_installed().then(|| real::scratch("tails"));
    for option in TAILS {
        let text = format!("[x]\nrw=write\nsize=1m\n{option}\n");
        let told = ours(&text).expect_err(option);
        let Some(scratch) = &scratch else { continue };
        std::fs::write(scratch.path().join("test.fio"), &text).expect("writes");
        let accepted = real::accepts(scratch.path(), "test.fio").is_ok();
        let says = told.contains("fio would");
        assert!(accepted || !says, "fio refuses {option}, and here is told: {told}");
    }
    let Some(scratch) = &scratch else { return };
    // It drops the tail of a number, and takes a time with an unknown unit for microseconds.
    let calls = |options: &str| {
        std::fs::write(scratch.path().join("test.fio"), format!("[x]\nrw=write\n{options}\n")).expect("writes");
        let job = &real::run(scratch.path(), "test.fio")[0];
        (job.calls[1], job.runtime_ms)
    };
    assert_eq!(calls("size=1m\nnumber_ios=5x").0, 5);
    assert_eq!(calls("size=16kx\nbs=8kx").0, 2);
    assert!(calls("size=64k\nrate=64k\nthinktime=100foo").1 < 3_000);
}

#[test]
fn a_range_of_startdelay_is_taken_as_fio_takes_it() {
    for option in ["startdelay=200ms-600ms", "startdelay=200ms:600ms", "startdelay=1-2", "startdelay=1s"] {
        let text = format!("[x]\nrw=write\nsize=4k\n{option}\n");
        ours(&text).unwrap_or_else(|told| panic!("{told}"));
        if real::is_installed() {
            let scratch = real::scratch("delay");
            std::fs::write(scratch.path().join("test.fio"), &text).expect("writes");
            real::accepts(scratch.path(), "test.fio").unwrap_or_else(|told| panic!("fio rejects {option}: {told}"));
        }
    }
    assert!(ours("[x]\nrw=write\nsize=4k\nstartdelay=600ms-200ms\n").unwrap_err().contains("end is before"));
    let text = "[x]\nrw=read\nsize=4k\nnumjobs=20\nstartdelay=200ms-600ms\n";
    let parsed = parse("test.fio", text, &mut Host { directory: super::jobs_directory() }).expect("right");
    let ended: Vec<u64> = super::simulate(parsed.jobs).iter().map(|job| job.ended_ns / 1_000_000).collect();
    assert!(ended.iter().all(|ms| (200..=601).contains(ms)), "{ended:?}");
    assert!(ended.iter().max() > ended.iter().min().map(|ms| ms + 100).as_ref(), "each clone draws: {ended:?}");
}

#[test]
fn what_fio_misreads_is_rejected_too() {
    for option in MISREAD {
        let told = ours(&format!("[x]\nrw=write\nfilesize=1m\n{option}\n")).expect_err(option);
        assert!(told.starts_with("test.fio:4: option '"), "{told}");
    }
}
