use super::*;

fn look(at_ns: u64, dirty_bytes: u64, written_bytes: u64, worked_ns: u64) -> Look {
    Look { at_ns, dirty_bytes, written_bytes, worked_ns, limit_ns: 0 }
}

#[test]
fn a_backlog_is_the_time_that_the_disk_worked_on_it() {
    // The disk stands still from 20 to 30, which does not count as work.
    let looks = [
        look(0, 100, 0, 0),
        look(10, 150, 50, 10),
        look(20, 100, 100, 20),
        look(30, 100, 100, 20),
        look(50, 0, 200, 40),
    ];
    let backlogs: Vec<u64> = backlogs_ns(&looks).iter().map(|(_, ns)| *ns).collect();
    assert_eq!(backlogs, [20, 30, 20, 20, 0]);
    assert_eq!(backlogs_ns(&looks[..4])[1], (10, 10), "what is not seen is not made up");
}

#[test]
fn what_was_written_between_two_instants_is_by_the_last_looks_before_them() {
    let looks = [look(0, 0, 0, 0), look(20, 0, 100, 0), look(40, 0, 300, 0), look(60, 0, 700, 0)];
    assert_eq!(written_between(&looks, 20, 60), 600);
    assert_eq!(written_between(&looks, 39, 59), 200);
    assert_eq!(written_between(&[], 0, 10), 0);
}

#[test]
fn fairness_is_one_for_equal_shares() {
    let near = |value: f64, wanted: f64| (value - wanted).abs() < 1e-9;
    assert!(near(jain(&[3.0, 3.0, 3.0]), 1.0) && near(jain(&[1.0, 0.0]), 0.5));
}
