use workloads::simulation::{Loss, LossCause};

use super::super::tests::{run, two};
use super::answer;

#[test]
fn it_says_when_all_was_accepted_and_on_disk_and_who_waited() {
    let said = "1.00 GB accepted after 40 s, on disk after 44 s; 4.10 MB read; an fsync of backup waited 1.44 s at worst; 1 \
                call failed.";
    assert_eq!(answer(&[run()]), said);
    assert_eq!(
        answer(&two()),
        format!(
            "afflux: {said}\nlinux-6.1: 1.00 GB accepted after 1 min 24 s, on disk after 1 min 28 s; 4.10 MB read; an fsync of backup \
             waited 1.44 s at worst; 1 call failed."
        )
    );
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
    assert!(answer(&[run]).ends_with("; a write of backup waited 4.92 ms at worst."));
    let mut run = super::super::tests::run();
    run.figures.jobs.remove(0);
    run.figures.jobs[0].errors.clear();
    assert_eq!(answer(&[run]), "4.10 MB read in 20 s, 205 kB/s; a read of <desktop> waited 960 ms at worst.");
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
