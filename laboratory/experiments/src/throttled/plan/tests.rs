#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::experiment::tests::{asked, given};
use crate::throttled::THROTTLED;

#[test]
fn jobs_run_together_up_to_a_stonewall() {
    let names = |plan: &Plan| plan.groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>();
    let usual = || given(&THROTTLED, &[]);
    let built_in = plan(&usual()).unwrap();
    assert_eq!(names(&built_in), ["synced", "random", "mixed", "stream"]);
    assert!(built_in.groups.iter().all(|group| group.jobs.len() == 1 && !group.jobs[0].stonewall));
    assert_eq!(names(&plan(&Request { quick: true, ..usual() }).unwrap()), ["synced", "stream"]);
    let rates: Vec<u64> = built_in.rates.iter().map(|rate| rate.bytes_per_s).collect();
    assert_eq!(rates, [25_000_000, 5 << 20, 100_000_000]);
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "jobs").unwrap();
    let path = scratch.path().join("jobs.fio");
    std::fs::write(&path, "[global]\nsize=1m\n[one]\nrw=write\n[two]\nrw=write\n[three]\nstonewall\nrw=write\n")
        .unwrap();
    let own = plan(&given(&THROTTLED, &[("job", &path.display().to_string())])).unwrap();
    assert_eq!((names(&own), own.groups[0].jobs.len()), (vec!["one".to_owned(), "three".to_owned()], 2));
}

#[test]
fn what_cannot_be_run_says_why() {
    let error = |name: &str, value: &str| {
        let asked = asked(&THROTTLED, &[(name, value)]);
        asked.and_then(|request| plan(&request)).map(drop).unwrap_err().to_string()
    };
    assert!(
        error("rates", "25MB,fast").contains("'fast' is not a rate from 100 kB/s to 10 GB/s"),
        "{}",
        error("rates", "fast")
    );
    assert!(error("rates", "5").contains("from 100 kB/s"));
    assert!(error("memory", "1KiB").contains("not a size from 16 MiB to 8 GiB"));
    assert!(error("job", "/no/such.fio").contains("/no/such.fio cannot be read"));
}

#[test]
fn the_simulated_disk_has_the_rate_to_the_byte() {
    let rate = Rate { text: "5MiB".to_owned(), bytes_per_s: 5 << 20 };
    let model = model(&rate).unwrap();
    assert_eq!((model.get("read_bytes_per_second"), model.get("write_bytes_per_second")), (5 << 20, 5 << 20));
}
