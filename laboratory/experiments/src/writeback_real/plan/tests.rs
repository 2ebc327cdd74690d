#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use super::*;
use crate::experiment::tests::asked;
use crate::writeback_real::WRITEBACK_REAL;

fn plan(pairs: &[(&str, &str)], quick: bool) -> Result<Plan, String> {
    let request = asked(&WRITEBACK_REAL, pairs).map(|request| Request { quick, ..request });
    request.and_then(|request| Plan::read(&request)).map_err(|error| error.to_string())
}

#[test]
fn what_cannot_be_used_is_refused_with_what_could_be() {
    for (name, value, words) in [
        ("races", "sprint", "'sprint' is none of full-speed, at-rate, small-sync, burst, direct"),
        ("races", "burst,burst", "each once"),
        ("policy", "sometimes", "there is no policy 'sometimes'; there are afflux"),
        ("knobs", "no_such_knob=1", "no_such_knob"),
        ("knobs", "dirty_ratio", "dirty_ratio"),
        ("rate", "0", "1 MB/s to 10 GB/s"),
        ("fast-rate", "fast", "'fast' is not a rate"),
        ("seconds", "1", "2 to 600"),
        ("repeats", "0", "1 to 20"),
        ("max-bytes", "1kB", "1kB"),
        ("memory", "1MB", "1MB"),
        ("burst", "0", "0"),
        ("size", "-1", "-1"),
        ("directory", "/no/such/place", "No such file"),
        ("directory", "/proc/version", "no directory"),
        ("directory", "/dev/shm", "in memory"),
    ] {
        if name == "directory" && value == "/dev/shm" && !Path::new(value).exists() {
            continue;
        }
        let error = plan(&[(name, value)], false).unwrap_err();
        assert!(error.contains(&format!("--{name} ")) && error.contains(value) && error.contains(words), "{error}");
    }
}

#[test]
fn a_policy_each_is_a_contender_and_none_is_what_an_engine_has() {
    let names = |plan: &Plan, race| plan.subjects(race).iter().map(Subject::name).collect::<Vec<_>>();
    let default = plan(&[], false).unwrap();
    assert_eq!(names(&default, WritebackRace::FullSpeed), ["kernel", "kernel, tuned", "afflux"]);
    assert_eq!(names(&default, WritebackRace::Direct), ["O_DIRECT", "kernel", "afflux"]);
    let two = plan(&[("policy", "afflux,linux-6.1"), ("knobs", "dirty_ratio=30")], false).unwrap();
    assert_eq!(names(&two, WritebackRace::Burst)[2..], ["afflux", "afflux, linux-6.1"]);
    assert!(two.engines.iter().all(|engine| engine.knobs == ["dirty_ratio=30"]));
}

#[test]
fn the_disk_holds_what_may_be_dirty_and_what_is_written() {
    let mut plan = plan(&[], false).unwrap();
    plan.limit_bytes = 4_600_000_000;
    assert!(plan.stream_bytes_max() > 4_600_000_000 + 45 * 25_000_000, "{}", plan.stream_bytes_max());
    assert!(plan.image_bytes() <= 8 << 30);
    // Three repeats of the whole: the kernel's sync alone takes two and a half minutes of each.
    let minutes = plan.expected_s(&plan.races) / 60;
    assert!((15..40).contains(&minutes), "{minutes}");
    // The first race: 4 s to set up, 45 s, and then 156 s for the kernel's 3.9 GB or a second for the other two.
    assert_eq!(plan.expected_s(&[WritebackRace::FullSpeed]), 3 * (4 + 45 + 156 + 2 * (4 + 45 + 1)));
}

#[test]
fn the_quick_form_takes_seconds() {
    let quick = plan(&[("policy", "afflux")], true).unwrap();
    assert_eq!(
        (quick.race.run.repeats, quick.engine.memory_bytes, quick.engines[0].memory_bytes),
        (1, 64 << 20, 64 << 20)
    );
    assert!(quick.image_bytes() == 128 << 20 && quick.expected_s(&quick.races) < 120, "{quick:?}");
    let given = plan(&[("policy", "afflux"), ("memory", "128MiB"), ("seconds", "20"), ("repeats", "2")], true).unwrap();
    assert_eq!(
        (given.engine.memory_bytes, given.engines[0].memory_bytes),
        (128 << 20, 128 << 20),
        "what is given counts"
    );
    assert_eq!((given.race.seconds, given.race.run.repeats), (20, 2));
    assert!(given.image_bytes() > 20 * given.race.rate_bytes_per_s, "{given:?}");
}
