use std::time::Duration;

use afflux_workloads::simulation::Progress;

use super::{RunDisplay, sentence};

const SECOND: u64 = 1_000_000_000;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_run_is_as_far_as_its_bytes_or_its_time() {
    let run = Progress { virtual_ns: 12 * SECOND, bytes: 1_200_000_000, ..Progress::default() };
    assert_eq!(sentence(run), "12 s simulated   1.20 GB");
    let by_bytes = Progress { bytes_total: Some(4_000_000_000), ..run };
    assert_eq!(sentence(by_bytes), "30 %   12 s simulated   1.20 GB of 4.00 GB");
    let by_time = Progress { time_total_ns: Some(60 * SECOND), ..run };
    assert_eq!(sentence(by_time), "20 %   12 s of 1 min 0 s simulated   1.20 GB");
    // Writeback after the end of the jobs.
    let after = Progress { virtual_ns: 70 * SECOND, ..by_time };
    assert_eq!(sentence(after), "100 %   1 min 10 s of 1 min 0 s simulated   1.20 GB");
    assert_eq!(sentence(Progress { time_total_ns: Some(0), ..run }), "100 %   12 s of 0 µs simulated   1.20 GB");
}

#[test]
fn without_a_terminal_short_runs_are_silent_and_long_ones_are_not() {
    let mut display = RunDisplay::shown_on(false);
    let mut said = |at| display.shown(Progress { bytes: 5_000_000, ..Progress::default() }, seconds(at));
    assert_eq!([said(0.0), said(0.6), said(9.9)], [None, None, None]);
    assert_eq!(said(10.4).unwrap(), "simulating for 10 s: 0 µs simulated   5.00 MB");
    assert_eq!([said(10.5), said(20.0)], [None, None]);
    assert!(said(20.4).is_some() && said(20.5).is_none());
    // A late line does not bring the next one forward.
    assert!(said(95.0).is_some() && said(104.9).is_none() && said(105.0).is_some());
}
