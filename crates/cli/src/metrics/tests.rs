use std::collections::BTreeSet;

use metrics::{Family, Kind};

use super::names::all;

const PAGE: &str = include_str!("../../../../docs/live.md");
const DASHBOARD: &str = include_str!("../../../../docs/dashboard.json");

/// The names of figures of ours that a text has.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("afflux_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The names that samples of a family have.
fn samples(family: &Family) -> Vec<String> {
    match family.kind {
        Kind::Histogram => ["bucket", "sum", "count"].map(|part| format!("{}_{part}", family.name)).to_vec(),
        Kind::Counter | Kind::Gauge => vec![family.name.to_string()],
    }
}

#[test]
fn names_follow_the_conventions() {
    let mut met = BTreeSet::new();
    for family in all() {
        let name = &*family.name;
        assert!(met.insert(name), "{name} is there twice");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(name.starts_with("afflux_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == Kind::Counter, "{name}");
        for unit in ["_ns", "_ms", "_us", "_kb", "_percent"] {
            assert!(!name.contains(&format!("{unit}_")) && !name.ends_with(unit), "{name} is in no base unit");
        }
        assert!(family.kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        // These names mean parts of a histogram.
        assert!(!["_sum", "_count", "_bucket"].iter().any(|part| name.ends_with(part)), "{name}");
        assert!(family.help.ends_with('.') && !family.help.contains(['\n', '\\']), "{name}: {}", family.help);
    }
}

#[test]
fn every_family_is_on_its_page_and_the_page_has_no_others() {
    let page = named(PAGE);
    let families: BTreeSet<String> = all().iter().map(|family| family.name.to_string()).collect();
    let missing: Vec<_> = families.difference(&page).collect();
    assert!(missing.is_empty(), "docs/live.md lacks {missing:?}");
    let known: BTreeSet<String> = all().into_iter().flat_map(samples).chain(families).collect();
    let unknown: Vec<_> = page.difference(&known).collect();
    assert!(unknown.is_empty(), "docs/live.md has {unknown:?}");
}

#[test]
fn the_dashboard_refers_only_to_figures_that_exist() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let known: BTreeSet<String> = all().into_iter().flat_map(samples).collect();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let names = named(target["expr"].as_str().unwrap());
            assert!(!names.is_empty() && names.is_subset(&known), "{}: {names:?}", panel["title"]);
            asked += 1;
        }
    }
    assert!(asked >= 10, "{asked}");
    // Also those of its variables.
    let unknown: Vec<_> = named(DASHBOARD).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
