#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_report::terminal::Terminal;

use super::*;
use crate::experiment::Request;

fn plan(repeats: &str) -> Plan {
    let given = vec![("repeats".to_owned(), repeats.to_owned())];
    Plan::read(&Request { given, ..Request::default() }).unwrap()
}

/// All tables of a page.
fn text(page: &WritebackPage<'_>) -> String {
    page.tables().iter().map(|table| table.text(Terminal::PLAIN)).collect()
}

fn ran(metrics: &[(&'static str, f64)]) -> Ran {
    Ran { metrics: metrics.to_vec(), looks: Vec::new(), delays: None }
}

#[test]
fn goals_are_judged_by_the_median_and_for_the_engine_alone() {
    let plan = plan("3");
    let (kernel, ours) = (Subject::Kernel, Subject::Ours(0, "afflux".to_owned()));
    let mut page = WritebackPage::new(&plan, vec!["burst was left out: no root.".to_owned()]);
    for (own, kernels) in [(1.1, 154.0), (1.3, 150.0), (1.15, 160.0)] {
        page.add(WritebackRace::FullSpeed, &ours, ran(&[("sync_s", own), ("write_p999_ms", 7.0)]));
        page.add(WritebackRace::FullSpeed, &kernel, ran(&[("sync_s", kernels), ("write_p999_ms", 20.0)]));
    }
    let text = text(&page);
    let sync = text.lines().find(|line| line.contains("fsync of everything")).unwrap();
    assert!(sync.contains("≤ 1.20") && sync.contains("154.00 (150.00 to 160.00)  "), "{sync}");
    assert!(
        sync.contains("1.15 (1.10 to 1.30) met") && sync.find("154").unwrap() < sync.find("1.15").unwrap(),
        "{sync}"
    );
    let writes = text.lines().find(|line| line.trim_start().starts_with("a write, p99.9")).unwrap();
    assert!(writes.contains("7.0 (7.0 to 7.0) missed") && !writes.contains("20.0 (20.0 to 20.0) missed"), "{writes}");
    assert!(!text.contains("the real disk"), "what was not raced has no line: {text}");
    assert!(text.contains("burst was left out: no root."));
    assert_eq!(
        page.findings().answer,
        "After a writer at full speed to 25.0 MB/s an fsync takes: kernel 2 min 34 s; afflux 1.15 s. Meanwhile one write in a \
         thousand takes longer than: kernel 20.0 ms; afflux 7.00 ms."
    );
}

#[test]
fn a_share_is_of_the_run_in_the_same_repeat() {
    let plan = plan("2");
    let ours = Subject::Ours(0, "afflux".to_owned());
    let mut page = WritebackPage::new(&plan, Vec::new());
    for (raw, own) in [(1000.0, 990.0), (4000.0, 3800.0)] {
        page.add(WritebackRace::Direct, &Subject::Raw, ran(&[("mb_per_s", raw)]));
        page.add(WritebackRace::Direct, &ours, ran(&[("mb_per_s", own)]));
    }
    let text = text(&page);
    let share = text.lines().find(|line| line.trim_start().starts_with("of O_DIRECT")).unwrap();
    assert!(share.contains("≥ 98.0") && share.contains("97.0 (95.0 to 99.0) missed"), "{share}");
}
