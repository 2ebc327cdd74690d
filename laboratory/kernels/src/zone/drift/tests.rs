use super::*;

#[test]
fn changes_are_told_when_they_pass_the_threshold() {
    let count = DriftingCount::new(1000, 2, 48);
    for (cpu, change, seen) in [(0, -31, 1000), (1, -31, 1000), (0, -17, 1000), (0, -1, 951), (1, 31, 951)] {
        count.add(cpu, change);
        assert_eq!(count.seen(), seen, "{change} on {cpu}");
    }
}

#[test]
fn without_a_threshold_nothing_is_untold() {
    let count = DriftingCount::new(10, 1, 0);
    count.add(0, -1);
    assert_eq!(count.seen(), 9);
}

#[test]
fn the_kernels_thresholds() {
    // CPUs, MiB, threshold: the table beside the formula in the kernel's vmstat.c.
    for (cpus, mib, threshold) in
        [(1, 127, 2), (1, 128, 4), (2, 1024, 20), (4, 2048, 36), (8, 3072, 48), (64, 8192, 112)]
    {
        assert_eq!(drift_threshold(cpus, mib << 8), threshold, "{cpus} CPUs, {mib} MiB");
    }
    assert_eq!(drift_threshold(1024, u32::MAX), 125);
}
