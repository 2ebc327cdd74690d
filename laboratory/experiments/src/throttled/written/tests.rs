use super::*;

/// A run that accepts the given megabytes in each second.
fn accepting(by_second: &[u64]) -> Written {
    let mut accepted_bytes = 0;
    let looks = std::iter::once(0).chain(by_second.iter().copied()).enumerate().map(|(second, mb)| {
        accepted_bytes += mb * 1_000_000;
        Look { at_s: second as f64, dirty_bytes: 0, accepted_bytes }
    });
    Written { looks: looks.collect(), p99_ns: 0, max_ns: 0, sync_ns: 0, delays: serde_json::Value::Null }
}

#[test]
fn a_plateau_is_what_was_dirty_once_memory_had_filled() {
    let mut written = accepting(&[20; FILLING_S as usize + 4]);
    for look in &mut written.looks {
        look.dirty_bytes = if look.at_s < FILLING_S as f64 { 900_000_000 } else { 50_000_000 };
    }
    (written.p99_ns, written.sync_ns) = (7_000_000, 1_500_000_000);
    let figures = figures(&written, FILLING_S + 4);
    assert_eq!((figures.plateau_mb, figures.p99_ms, figures.sync_s), (50.0, 7.0, 1.5));
}
