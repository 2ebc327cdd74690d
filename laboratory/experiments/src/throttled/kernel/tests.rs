#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// The waits of the writer and of its sync are those that the engine reported.
#[test]
fn a_writer_waits_for_its_share_and_syncs_once() {
    let rate = &Rate { text: "25MB".to_owned(), bytes_per_s: 25_000_000 };
    let form = Form { name: "small", max_bytes: 0, limit_bytes: None };
    let written = simulate(&form, Machine { rate, seconds: 12, dirty_limit_bytes: 1_000_000_000, hz: 250 }).unwrap();
    let waited = written.delays["writer"].clone();
    assert!(waited["throttle"]["average_ms"].as_f64().unwrap() > 1.0, "{waited}");
    assert_eq!(waited["sync"]["count"], 1, "{waited}");
    let (longest_ms, sync_ms) = (waited["sync"]["max_ms"].as_f64().unwrap(), written.sync_ns as f64 / 1e6);
    assert!((longest_ms - sync_ms).abs() < 1.0, "{waited}, and the job waited {sync_ms} ms");
}

/// By hand: the background line is half of the limit, writers run free up to three quarters, and the law aims at the
/// middle of the rest, seven eighths. An fsync then takes what is dirty at the disk's rate.
#[test]
fn a_writer_settles_at_seven_eighths_of_its_limit() {
    let of = |form: Form, megabytes: u64, dirty_limit_bytes| {
        let rate = &Rate { text: format!("{megabytes}MB"), bytes_per_s: megabytes * 1_000_000 };
        let written = simulate(&form, Machine { rate, seconds: 45, dirty_limit_bytes, hz: 1000 }).unwrap();
        let [dirty_mb, sync_s] = figures(&written, 45, ["dirty_mb", "sync_s"]);
        (dirty_mb, sync_s * megabytes as f64)
    };
    let strict = |max_bytes| Form { name: "strict", max_bytes, limit_bytes: None };
    // The second is a hundredth of a fifth of 8 GiB, as a FUSE mount has; the third a group of 256 MiB, not strict.
    for (form, megabytes, limit_bytes, limit_mb) in [
        (strict(100_000_000), 40, 4_723_000_000, 100.0),
        (strict(17_180_000), 25, 1_718_000_000, 17.18),
        (strict(0), 25, 53_690_000, 53.69),
    ] {
        let (dirty_mb, synced_mb) = of(form, megabytes, limit_bytes);
        assert!((dirty_mb / limit_mb / 0.875 - 1.0).abs() < 0.06, "{dirty_mb} MB of {limit_mb}");
        assert!((synced_mb / dirty_mb - 1.0).abs() < 0.2, "{synced_mb} of {dirty_mb}");
    }
}

fn figures<const N: usize>(written: &Written, seconds: u64, names: [&str; N]) -> [f64; N] {
    let metrics = metrics(written, seconds);
    names.map(|name| metrics.get(name).and_then(Value::as_f64).unwrap())
}

/// A run that accepts the given megabytes in each second.
fn accepting(by_second: &[u64]) -> Written {
    let mut accepted_bytes = 0;
    let looks = std::iter::once(0).chain(by_second.iter().copied()).enumerate().map(|(second, mb)| {
        accepted_bytes += mb * 1_000_000;
        Look { at_s: second as f64, dirty_bytes: 0, accepted_bytes }
    });
    Written { looks: looks.collect(), p99_ns: 0, max_ns: 0, sync_ns: 0, delays: Value::Null }
}

#[test]
fn a_plateau_is_what_was_dirty_once_memory_had_filled() {
    let mut written = accepting(&[20; FILLING_S as usize + 4]);
    for look in &mut written.looks {
        look.dirty_bytes = if look.at_s < FILLING_S as f64 { 900_000_000 } else { 50_000_000 };
    }
    (written.p99_ns, written.sync_ns) = (7_000_000, 1_500_000_000);
    let figures = figures(&written, FILLING_S + 4, ["dirty_mb", "write_p99_ms", "sync_s", "accepted_mb_per_s"]);
    assert_eq!(figures, [50.0, 7.0, 1.5, 20.0]);
}
