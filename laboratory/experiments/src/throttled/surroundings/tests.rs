use super::*;

fn look(at_s: f64, megabytes: u64) -> Look {
    Look { at_s, dirty_bytes: megabytes * 1_000_000, accepted_bytes: megabytes * 1_000_000 }
}

#[test]
fn the_machine_is_what_it_was_during_the_run() {
    let around: Vec<MachineSample> = (-120_i32..100)
        .map(|tenth| MachineSample {
            at_s: f64::from(tenth) / 10.0 + 0.01,
            dirty_limit_bytes: if tenth < 0 { 1 } else { 4_000_000_000 },
            // 3 MB a second before the writer, 20 from then on.
            others_bytes: if tenth < 0 {
                (tenth + 120) as u64 * 300_000
            } else {
                36_000_000 + tenth as u64 * 2_000_000
            },
            late_ns: if tenth == 50 { 9_000_000 } else { 100_000 },
        })
        .collect();
    let looks: Vec<Look> = (0..60).map(|tenth| look(tenth as f64 / 10.0, tenth * 50)).collect();
    let surroundings = Surroundings::of(&around, &looks, 8, 250);
    assert_eq!((surroundings.dirty_limit_bytes, surroundings.hz), (4_000_000_000, 250));
    assert_eq!(surroundings.others_bytes.len() as u64, BEFORE_S + 8);
    let at = |second: i64| surroundings.others_bytes[(BEFORE_S as i64 + second) as usize];
    assert_eq!((at(-20), at(-7), at(3)), (0, 3_000_000, 20_000_000));
    assert!(surroundings.others_bytes_per_s().abs_diff(20_000_000) < 500_000, "{surroundings:?}");
    assert_eq!(surroundings.late_p99_ns, 9_000_000, "one of 80");
    assert_eq!(surroundings.filling_bytes, [100_000_000; 29], "until 2.9 GB were dirty");
    assert_eq!(surroundings.filling(), Duration::from_millis(5800));
}

#[test]
fn what_fills_in_an_instant_fills_as_memory_goes() {
    let looks = [look(0.0, 0), look(0.1, 300), look(0.2, 320)];
    assert!(filling(&looks, 400_000_000).is_empty());
    assert!(filling(&looks, 4_000_000_000).is_empty(), "never reached");
}
