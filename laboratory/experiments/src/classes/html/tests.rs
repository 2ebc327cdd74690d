#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use afflux_report::terminal::Terminal;

use super::*;
use crate::classes::load::OfClass;
use crate::contenders::latencies::Latencies;
use crate::experiment::Request;

fn plan(release: &str) -> Plan {
    let given = vec![("repeats".to_owned(), "1".to_owned()), ("places".to_owned(), "disk".to_owned())];
    let plan = Plan::read(&Request { given, ..Request::default() }).unwrap();
    Plan { release: release.to_owned(), ..plan }
}

/// Each class writes its `megabytes` in a second, and all are durable after `seconds`.
fn ran(megabytes: &[u64], seconds: u64) -> Ran {
    // Half of the calls take a millisecond.
    let mut latencies = Latencies::default();
    [1_000_000, 5_000_000].into_iter().for_each(|ns| latencies.add(ns));
    let class = |megabytes: &u64| OfClass {
        bytes: megabytes * 1_000_000,
        elapsed: Duration::from_secs(1),
        latencies: latencies.clone(),
    };
    let classes = megabytes.iter().map(class).collect();
    Ran { classes, elapsed: Duration::from_secs(seconds), dirty_bytes_max: 7_000_000, delays: None }
}

fn line(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines().skip(2);
    let line = lines.find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_rate_is_until_all_is_durable_and_beside_that_of_buffered() {
    let plan = plan("6.18.44");
    let mut page = ClassesPage::new(&plan, Vec::new());
    let one = |way| [Class { way, writers: 1 }];
    page.add((FileMedium::Disk, Load::One), &one(Way::Kernel(KernelWay::Buffered)), ran(&[800], 4));
    page.add((FileMedium::Disk, Load::One), &one(Way::Ours(0)), ran(&[600], 2));
    let text = page.table((FileMedium::Disk, Load::One)).text(Terminal::PLAIN);
    assert_eq!(line(&text, "buffered"), ["buffered", "200", "100", "%", "800", "1.016", "5.00", "5.0", "7"]);
    assert_eq!(line(&text, "afflux"), ["afflux", "300", "150", "%", "600", "1.016", "5.00", "5.0", "7"]);
}

#[test]
fn two_classes_have_their_own_rates() {
    let plan = plan("6.18.44");
    let mut page = ClassesPage::new(&plan, Vec::new());
    let pair = [Way::Kernel(KernelWay::Buffered), Way::Ours(0)].map(|way| Class { way, writers: 1 });
    page.add((FileMedium::Disk, Load::Competing), &pair, ran(&[100, 300], 2));
    let text = page.table((FileMedium::Disk, Load::Competing)).text(Terminal::PLAIN);
    assert_eq!(line(&text, "buffered"), ["buffered", "+", "afflux", "200", "100", "300", "5.00", "5.00", "7"]);
}

#[test]
fn which_form_of_dontcache_the_kernel_has_is_said() {
    let said = |release: &str| ClassesPage::new(&plan(release), Vec::new()).says().join(" ");
    assert!(said("6.18.44").contains("(6.18.44) has the old form of DONTCACHE"));
    assert!(said("7.2.0-rc1").contains("has the form of DONTCACHE in which the flusher is woken"));
    assert!(said("5.15.0").contains("older than RWF_DONTCACHE"));
    assert!(!said("unknown").contains("DONTCACHE"));
}

#[test]
fn releases_have_their_form() {
    assert_eq!(Form::of("6.13.9"), Some(Form::None));
    assert_eq!(Form::of("6.14-rc1"), Some(Form::Old));
    assert_eq!(Form::of("7.1.12"), Some(Form::Old));
    assert_eq!((Form::of("7.2"), Form::of("10.0.1")), (Some(Form::New), Some(Form::New)));
    assert_eq!((Form::of(""), Form::of("next")), (None, None));
}
