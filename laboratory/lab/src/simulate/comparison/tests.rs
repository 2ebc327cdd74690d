use afflux_report::terminal::Terminal;

use super::super::tests::two;
use super::summary;

#[test]
fn each_policy_has_a_column() {
    let text = summary(&two(), Terminal::PLAIN);
    assert!(
        text.starts_with(
            "Simulated 44 s and 1 min 28 s in 0.2 s: backup.fio on usb2-disk, 1.00 GiB of cache, 8 CPUs\n"
        ),
        "{text}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    for line in [
        "afflux linux-6.1",
        "backup write throughput 25.0 MB/s 12.5 MB/s",
        "p50 41.0 µs 82.0 µs",
        "<desktop> ×4 read throughput 205 kB/s 205 kB/s",
        "lost if the power failed at the worst moment 105 MB 210 MB",
        "all on disk after the last write 4.00 s 4.00 s",
        "seed 7, traces: afflux 00abcdef01234567, linux-6.1 00abcdef01234567 (--seed N for other runs)",
        "<desktop>: read: Input/output error (EIO), once",
    ] {
        assert!(lines.iter().any(|it| it == line), "{line:?} in\n{text}");
    }
}

#[test]
fn what_one_run_lacks_is_a_dash() {
    let mut runs = two();
    runs[1].figures.jobs[0].sync = Default::default();
    let text = summary(&runs, Terminal::PLAIN);
    let line = text.lines().find(|line| line.trim_start().starts_with("fsync")).unwrap();
    assert!(line.split_whitespace().eq(["fsync", "calls", "12", "-"]), "{line:?}");
}

#[test]
fn units_are_explained_once() {
    let text = summary(&two(), Terminal::PLAIN);
    assert_eq!(text.matches("are decimal").count(), 1, "{text}");
}
