use super::*;

#[test]
fn stolen_time_is_the_eighth_figure_of_all_cpus() {
    assert_eq!(stolen_ticks("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 44 9 10\n"), 88);
    assert_eq!(stolen_ticks(""), 0);
}

#[test]
fn both_kinds_of_context_switches_count() {
    let status = "Threads:\t1\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t5\n";
    assert_eq!(status.lines().filter_map(switches_of_line).sum::<u64>(), 155);
    assert!(Usage::of(std::process::id()).switches > 0);
}
