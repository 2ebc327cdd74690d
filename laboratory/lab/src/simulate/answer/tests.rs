use afflux_workloads::simulation::{CallWaits, Loss, LossCause};

use super::super::tests::{run, two};
use super::answer;

#[test]
fn it_says_when_all_was_accepted_and_on_disk_and_who_waited() {
    let waited = "an fsync of backup waited 12.0 ms in the median and 1.44 s at worst, 900 ms of that in the elevator, \
                  which let later requests go first; 1 call failed.";
    let said = format!("1.00 GB accepted after 40 s, on disk after 44 s; 4.10 MB read; {waited}");
    assert_eq!(answer(&[run()]), said);
    assert_eq!(
        answer(&two()),
        format!(
            "afflux against linux-6.1: worst fsync of backup about the same, median about the same; all on disk 2 times \
             earlier.\nafflux: {said}\nlinux-6.1: 1.00 GB accepted after 1 min 24 s, on disk after 1 min 28 s; 4.10 MB read; {waited}"
        )
    );
}

#[test]
fn two_policies_get_a_verdict_about_the_same_call_whichever_comes_first() {
    let mut runs = two();
    let (own, other) = (1_440_000_000, 12_500_000_000);
    runs[0].figures.jobs[0].sync.latency.max_ns = own;
    runs[0].figures.jobs[0].sync.latency.percentiles_ns[0].1 = 72_000_000;
    runs[1].figures.jobs[0].sync.latency.max_ns = other;
    let verdict = "afflux against linux-6.1: worst fsync of backup 8.7 times shorter, median 6 times longer; all on disk 2 \
                   times earlier.\n";
    assert!(answer(&runs).starts_with(verdict), "{}", answer(&runs));
    runs.reverse();
    assert!(answer(&runs).starts_with(verdict), "{}", answer(&runs));
    runs[0].figures.cut = true;
    assert!(answer(&runs).starts_with("linux-6.1: "), "a run that was cut is not compared");
}

#[test]
fn two_times_that_read_the_same_are_told_apart() {
    let mut run = run();
    (run.figures.virtual_ns, run.figures.settle_ns) = (91_200_000_000, 636_000_000);
    assert!(
        answer(std::slice::from_ref(&run)).starts_with("1.00 GB accepted after 1 min 31 s, on disk 636 ms later; ")
    );
    run.figures.settle_ns = 0;
    assert!(answer(&[run]).starts_with("1.00 GB accepted and on disk after 1 min 31 s; "));
}

#[test]
fn without_syncs_it_is_a_write_and_without_writes_a_read() {
    let mut run = run();
    run.figures.jobs[0].sync = Default::default();
    run.figures.jobs[1].errors.clear();
    assert!(answer(&[run]).ends_with("; a write of backup waited 41.0 µs in the median and 4.92 ms at worst."));
    let mut run = super::super::tests::run();
    run.figures.jobs.remove(0);
    run.figures.jobs[0].errors.clear();
    assert_eq!(
        answer(&[run]),
        "4.10 MB read in 20 s, 205 kB/s; a read of <desktop> waited 8.00 ms in the median and 960 ms at worst."
    );
}

#[test]
fn a_run_that_did_not_end_well_says_so() {
    let mut run = run();
    let loss = Loss {
        cause: LossCause::PowerLoss,
        at_ns: 9_000_000_000,
        accepted_bytes: 5,
        lost_bytes: Some(3),
        files: Vec::new(),
    };
    run.figures.loss = Some(loss);
    let said = answer(&[run]);
    assert!(
        said.contains("1.00 GB accepted in 44 s;")
            && said.contains("Power lost at 9.0 s: of 5 B accepted 3 B are lost"),
        "{said}"
    );
    let mut run = super::super::tests::run();
    run.figures.cut = true;
    assert!(answer(&[run]).contains("Cut at 44 s"), "cut");
    let mut run = super::super::tests::run();
    run.figures.jobs.clear();
    assert_eq!(answer(&[run]), "Nothing was read or written in 44 s.");
}

#[test]
fn it_says_when_each_job_ended_if_they_did_not_end_together() {
    let mut run = run();
    run.figures.jobs[2].write.bytes = 5;
    run.figures.jobs[2].ended_ns = 31_000_000_000;
    let said = answer(&[run]);
    assert!(said.contains("; backup ended after 40 s, idle after 31 s; "), "{said}");
}

#[test]
fn each_cause_of_the_slowest_wait_has_its_words() {
    let cause = |change: fn(&mut CallWaits)| {
        let mut run = run();
        let slowest = run.figures.jobs[0].sync.slowest.as_mut().unwrap();
        slowest.waits = CallWaits::default();
        change(&mut slowest.waits);
        let said = answer(&[run]);
        said.split_once(" at worst, ").unwrap().1.split_once(';').unwrap().0.to_owned()
    };
    const NS: u64 = 800_000_000;
    assert_eq!(cause(|_| {}), "1.44 s of that in the backlog: the cache wrote other data first");
    assert_eq!(cause(|waits| waits.pause_ns = NS), "800 ms of that paused at the dirty limit");
    assert_eq!(
        cause(|waits| waits.elevator_ns = NS),
        "800 ms of that in the elevator, which let later requests go first"
    );
    assert_eq!(cause(|waits| waits.queue_ns = NS), "800 ms of that in the disk's queue behind earlier requests");
    assert_eq!(cause(|waits| waits.disk_ns = NS), "800 ms of that for the disk's work on it");
}

#[test]
fn runs_with_shifted_starts_give_ranges() {
    let mut run = run();
    let mut shifted = run.figures.clone();
    shifted.jobs[0].sync.latency.max_ns = 2_000_000_000;
    shifted.jobs[0].sync.latency.percentiles_ns[0].1 = 9_000_000;
    run.shifted = vec![shifted];
    let said = answer(&[run]);
    let ranges = " (over 2 runs with shifted starts 9.00 ms to 12.0 ms in the median, 1.44 s to 2.00 s at worst); ";
    assert!(said.contains(ranges), "{said}");
}
