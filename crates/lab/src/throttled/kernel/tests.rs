use super::super::written::by_second;
use super::*;

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
