use super::*;

#[test]
fn marks_by_table() {
    for (n, on, off) in [(128, 113, 103), (2048, 1793, 1663), (16, 15, 12), (4, 4, 3), (1, 1, 1)] {
        assert_eq!((congestion_on_requests(n), congestion_off_requests(n)), (on, off), "{n}");
    }
}

#[test]
fn between_the_marks_it_stays_what_it_was() {
    let congestion = Congestion::default();
    congestion.grown(112, 128);
    assert!(!congestion.is_on());
    congestion.grown(113, 128);
    assert!(congestion.is_on());
    assert!(!congestion.shrunk(103, 128) && congestion.is_on());
    assert!(congestion.shrunk(102, 128) && !congestion.is_on());
    assert!(!congestion.shrunk(101, 128), "it ends once");
}

#[test]
fn a_queue_that_runs_empty_is_not_congested() {
    for n in 1..200 {
        let congestion = Congestion::default();
        congestion.grown(n, n);
        assert!(congestion.is_on() && congestion.shrunk(0, n));
    }
}
