use std::collections::BTreeSet;

use engine::WaitHistogram;
use metrics::{Family, Kind, Value};

use super::names::all;
use super::server::in_seconds;

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

#[test]
fn bounds_of_a_histogram_are_where_the_engine_counts() {
    let mut of = WaitHistogram { ns: 3_000_000_000, ..WaitHistogram::default() };
    (of.by_power[0], of.by_power[11], of.by_power[12], of.by_power[35], of.by_power[36], of.by_power[63]) =
        (1, 2, 4, 8, 16, 32);
    let Value::Histogram { buckets, sum } = in_seconds(&of) else { panic!() };
    assert_eq!((buckets.len(), sum), (26, 3.0));
    assert_eq!((buckets[0], buckets[1]), ((4.096e-6, 3), (8.192e-6, 4)));
    assert_eq!((buckets[24], buckets[25]), ((68.719_476_736, 8), (f64::INFINITY, 48)));
    assert!(buckets.is_sorted_by(|one, next| one.0 < next.0));
}
