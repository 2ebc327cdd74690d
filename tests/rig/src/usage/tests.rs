use super::{Usage, switches_of_line};

#[test]
fn both_kinds_of_context_switches_count() {
    let status = "Threads:\t1\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t5\n";
    assert_eq!(status.lines().filter_map(switches_of_line).sum::<u64>(), 155);
    assert!(Usage::of(std::process::id()).switches > 0);
}
