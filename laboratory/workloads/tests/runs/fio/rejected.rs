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

#[test]
fn what_fio_misreads_is_rejected_too() {
    for option in MISREAD {
        let told = ours(&format!("[x]\nrw=write\nfilesize=1m\n{option}\n")).expect_err(option);
        assert!(told.starts_with("test.fio:4: option '"), "{told}");
    }
}
