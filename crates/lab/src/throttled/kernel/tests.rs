use super::*;

/// So many megabytes accepted in each second.
fn accepting(by_second: &[u64]) -> Written {
    let mut accepted_bytes = 0;
    let looks = std::iter::once(0).chain(by_second.iter().copied()).enumerate().map(|(second, mb)| {
        accepted_bytes += mb * 1_000_000;
        Look { at_s: second as f64, dirty_bytes: 0, accepted_bytes }
    });
    Written { looks: looks.collect(), p99_ns: 0, max_ns: 0, sync_ns: 0 }
}

#[test]
fn how_far_apart_two_are_is_said_second_by_second_once_memory_has_filled() {
    let filling = [400; FILLING_S as usize];
    let (even, uneven) = (accepting(&[filling.as_slice(), &[20; 4]].concat()), &[10, 30, 20, 20]);
    let uneven = accepting(&[[0; FILLING_S as usize].as_slice(), uneven].concat());
    let seconds = FILLING_S + 4;
    assert_eq!(figures(&even, seconds).accepted_mb_per_s, 20.0);
    assert_eq!(figures(&uneven, seconds).accepted_mb_per_s, 20.0, "means hide it");
    assert_eq!(apart_by_second(&even, &uneven, seconds), 0.25);
    assert_eq!(apart_by_second(&even, &even, seconds), 0.0);
}

fn machine(others_bytes: Vec<u64>, filling_bytes: Vec<u64>) -> Surroundings {
    Surroundings { dirty_limit_bytes: 1_000_000_000, hz: 250, filling_bytes, others_bytes, late_p99_ns: 0 }
}

#[test]
fn others_write_what_they_wrote_when_they_wrote_it() {
    let jobs = others(&machine(vec![0, 5_000_000, 10, 70_000], Vec::new()));
    let told: Vec<_> = jobs.iter().map(|job| (job.start_delay_ns, job.rate_bytes[1], job.size)).collect();
    assert_eq!(told, [(1_000_000_000, 5_000_000, 77 << 16), (3_000_000_000, 70_000, 2 << 16)]);
}

/// The share of a device that others take part in is smaller, so its writer is slowed down earlier.
#[test]
fn what_others_write_costs_the_writer() {
    let rate = Rate { text: "25MB".to_owned(), bytes_per_s: 25_000_000 };
    let form = Form { name: "small", max_bytes: 0, limit_bytes: None };
    let seconds = 12;
    let accepted = |others: u64| {
        let machine = machine(vec![others; (BEFORE_S + seconds) as usize], vec![80_000_000; 10]);
        let written = simulate(&form, &rate, seconds, &machine).unwrap();
        by_second(&written, seconds)
    };
    let (alone, beside) = (accepted(0), accepted(50_000_000));
    assert!((350.0..=401.0).contains(&alone[0]), "as fast as memory fills: {alone:?}");
    let throttled = |by_second: &[f64]| by_second[2] + by_second[3];
    assert!(throttled(&beside) < 0.6 * throttled(&alone), "{alone:?} {beside:?}");
}
