use serde_json::json;

use super::{Engine, Figures, Job, MIB, of_report};

#[test]
fn what_counts_is_taken_from_the_report_and_the_pass_before_is_not() {
    let part = |iops: f64, count: u64, p99: u64| json!({ "iops": iops, "total_ios": count, "lat_ns": { "percentile": { "99.000000": p99, "99.900000": 2 * p99 } } });
    let report = json!({ "jobs": [
        { "jobname": "before", "error": 0, "read": part(1.0, 1, 1), "write": part(1.0, 1, 1) },
        { "jobname": "counted", "error": 0, "read": part(700.0, 700, 3000), "write": part(300.0, 300, 5000),
          "usr_cpu": 10.0, "sys_cpu": 40.0, "job_runtime": 1000 },
    ] });
    let wanted = Figures { rate: 1000.0, p99_us: 5.0, p99_9_us: 10.0, cpu_us: 500.0 };
    assert_eq!(of_report(&report), Some(wanted));
}

#[test]
fn a_job_that_failed_has_no_figures() {
    let report = json!({ "jobs": [{ "jobname": "counted", "error": 5 }] });
    assert_eq!(of_report(&report), None);
}

#[test]
fn two_jobs_with_a_file_each_run_at_the_same_time_and_count_together() {
    let job = Job::cached("two".to_owned(), "randread", MIB).two(super::Size::FileEach);
    let engine = Engine::Kernel { name: "psync", options: &[] };
    let words = job.words(&engine, None, "/place".as_ref(), true);
    let at: Vec<usize> = (0..words.len()).filter(|at| words[*at] == "--name=counted").collect();
    assert_eq!(at.len(), 2);
    assert!(
        words[at[0]..at[1]].contains(&"--stonewall".to_owned())
            && words[at[0]..at[1]].contains(&"--new_group=1".to_owned())
    );
    assert!(
        !words[at[1]..].contains(&"--stonewall".to_owned()) && !words[at[1]..].contains(&"--new_group=1".to_owned())
    );
}
