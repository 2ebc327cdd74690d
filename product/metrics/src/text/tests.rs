use super::*;

const WRITTEN: Family = Family::new("t_written_bytes_total", FamilyKind::Counter, "Bytes written.");
const OWED: Family = Family::new("t_owed_seconds", FamilyKind::Gauge, "Time owed.");
const WAITS: Family = Family::new("t_wait_seconds", FamilyKind::Histogram, "Waits.");

#[test]
fn families_have_their_descriptions_and_samples_together() {
    let mut all = Exposition::default();
    all.add(&WRITTEN, &[("device", "sda")], Value::Count(u64::MAX));
    all.add(&OWED, &[], Value::Number(0.25));
    all.add(&WRITTEN, &[("device", "sdb")], Value::Number(1.5));
    let expected = "# HELP t_owed_seconds Time owed.\n# TYPE t_owed_seconds gauge\nt_owed_seconds 0.25\n\
        # HELP t_written_bytes_total Bytes written.\n# TYPE t_written_bytes_total counter\n\
        t_written_bytes_total{device=\"sda\"} 18446744073709551615\nt_written_bytes_total{device=\"sdb\"} 1.5\n";
    assert_eq!(all.text(), expected);
}

#[test]
fn a_histogram_counts_up_to_each_bound() {
    let mut all = Exposition::default();
    let buckets = vec![(0.001, 2), (0.002, 0), (f64::INFINITY, 3)];
    all.add(&WAITS, &[("device", "sda")], Value::Histogram { buckets, sum: 9.5 });
    let expected = "# HELP t_wait_seconds Waits.\n# TYPE t_wait_seconds histogram\n\
        t_wait_seconds_sum{device=\"sda\"} 9.5\nt_wait_seconds_count{device=\"sda\"} 5\n\
        t_wait_seconds_bucket{le=\"0.001\",device=\"sda\"} 2\nt_wait_seconds_bucket{le=\"0.002\",device=\"sda\"} 2\n\
        t_wait_seconds_bucket{le=\"+Inf\",device=\"sda\"} 5\n";
    assert_eq!(all.text(), expected);
}

#[test]
fn names_of_strangers_end_no_line_and_no_label() {
    let mut all = Exposition::default();
    all.add(&OWED, &[("device", "a\"} 1\nt_evil 1\n# \\")], Value::Count(3));
    let text = all.text();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.ends_with("t_owed_seconds{device=\"a\\\"} 1\\nt_evil 1\\n# \\\\\"} 3.0\n"), "{text}");
}

#[test]
fn a_description_ends_no_line() {
    let mut all = Exposition::default();
    all.add(&Family::new("t_odd", FamilyKind::Gauge, "a \"b\" \\\nt_evil 1"), &[], Value::Number(1e-9));
    assert_eq!(all.text(), "# HELP t_odd a \"b\" \\\\\\nt_evil 1\n# TYPE t_odd gauge\nt_odd 1e-9\n");
}

#[test]
fn a_family_without_samples_is_left_out() {
    assert_eq!(Exposition::default().text(), "");
}
