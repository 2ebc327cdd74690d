use std::collections::BTreeSet;
use std::process::Command;

use afflux_metrics::{Family, FamilyKind};

use crate::metrics::*;

const PAGE: &str = include_str!("../../../../docs/use/live.md");
const METRICS: &str = include_str!("../../../../docs/reference/counters.md");
const DASHBOARD: &str = include_str!("../../../../docs/reference/dashboard.json");

/// The families that no record and no counter has.
pub(crate) fn others() -> Vec<&'static Family> {
    let tables = [PROCESS, SERVER, MOUNTED, GOVERNOR].into_iter().flatten().copied();
    tables
        .chain(DISK_CACHE.iter().map(|(family, _)| family))
        .chain(MOUNT.iter().map(|(family, _)| family))
        .chain(GOVERNED.iter().map(|(family, _)| family))
        .collect()
}

fn all() -> Vec<&'static Family> {
    fn first<T>(of: &'static [(Family, T)]) -> impl Iterator<Item = &'static Family> {
        of.iter().map(|(family, _)| family)
    }
    let of_records = first(&CACHE).chain(first(&DEVICE)).chain(first(&BUDGET)).chain(first(&CONNECTIONS));
    others().into_iter().chain(of_records).chain(OF_COUNTERS.iter()).collect()
}

/// The names of our figures that occur in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("afflux_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The names of a family's samples.
fn samples(family: &Family) -> Vec<String> {
    match family.kind {
        FamilyKind::Histogram => ["bucket", "sum", "count"].map(|part| format!("{}_{part}", family.name)).to_vec(),
        FamilyKind::Counter | FamilyKind::Gauge => vec![family.name.to_string()],
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
        assert_eq!(name.ends_with("_total"), family.kind == FamilyKind::Counter, "{name}");
        for unit in ["_ns", "_ms", "_us", "_kb", "_percent"] {
            assert!(!name.contains(&format!("{unit}_")) && !name.ends_with(unit), "{name} is in no base unit");
        }
        assert!(family.kind != FamilyKind::Histogram || name.ends_with("_seconds"), "{name}");
        // These suffixes are reserved for parts of a histogram.
        assert!(!["_sum", "_count", "_bucket"].iter().any(|part| name.ends_with(part)), "{name}");
        assert!(family.help.ends_with('.') && !family.help.contains(['\n', '\\']), "{name}: {}", family.help);
    }
}

#[test]
fn every_family_is_on_its_page_and_the_page_has_no_others() {
    let page = named(METRICS);
    let families: BTreeSet<String> = all().iter().map(|family| family.name.to_string()).collect();
    let missing: Vec<_> = families.difference(&page).collect();
    assert!(missing.is_empty(), "docs/reference/counters.md lacks {missing:?}");
    let known: BTreeSet<String> = all().into_iter().flat_map(samples).chain(families).collect();
    let unknown: Vec<_> = page.difference(&known).collect();
    assert!(unknown.is_empty(), "docs/reference/counters.md has {unknown:?}");
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
    // The queries of the dashboard's variables are included.
    let unknown: Vec<_> = named(DASHBOARD).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The verdict of `promtool` on rules with these expressions; none if it is not installed.
fn checked_by_prometheus(expressions: &[String]) -> Option<Result<(), String>> {
    let directory = afflux_scratch::Scratch::new(&std::env::temp_dir(), "promtool").unwrap().keep();
    let rule = |(at, expression): (usize, &String)| {
        // JSON is YAML.
        serde_json::json!({"record": format!("query_{at}"), "expr": expression})
    };
    let rules: Vec<_> = expressions.iter().enumerate().map(rule).collect();
    let file = directory.join("rules.yml");
    std::fs::write(&file, serde_json::json!({"groups": [{"name": "all", "rules": rules}]}).to_string()).unwrap();
    let ran = Command::new("promtool").args(["check", "rules"]).arg(&file).output();
    std::fs::remove_dir_all(&directory).unwrap();
    let output = ran.ok()?;
    Some(if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) })
}

#[test]
fn prometheus_takes_each_query_of_the_dashboard_and_of_what_is_worth_an_alarm() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let query = |target: &serde_json::Value| {
        // With the values that Grafana fills in.
        let text = target["expr"].as_str().unwrap().replace("$__rate_interval", "1m0s");
        ["$instance", "$device"].iter().fold(text, |text, variable| text.replace(variable, "sd.*"))
    };
    let mut queries: Vec<String> = targets.map(query).collect();
    let (_, alarms) = PAGE.split_once("Worth an alarm:").unwrap();
    let alarms = alarms.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let before = queries.len();
    queries.extend(alarms.filter_map(|line| Some(line.split('`').nth(1)?.to_owned())));
    assert!(queries.len() >= before + 5 && before > 30, "{queries:?}");
    let Some(checked) = checked_by_prometheus(&queries) else {
        afflux_scratch::skipped!("no promtool (Debian package prometheus)");
        return;
    };
    assert_eq!(checked, Ok(()));
    queries.push("sum by (device (afflux_cache_files)".to_owned());
    assert!(checked_by_prometheus(&queries).is_some_and(|checked| checked.is_err()), "it takes anything");
}

/// The demands of Grafana's public schema of dashboards (`kinds/dashboard/dashboard_kind.cue` in its repository), as
/// far as they apply to this one. The test does not load it in a Grafana.
#[test]
fn the_dashboard_has_the_shape_that_grafana_asks_for() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let uid = dashboard["uid"].as_str().unwrap();
    assert!((1..=40).contains(&uid.len()) && dashboard["schemaVersion"].as_u64() >= Some(36));
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let kind = variable["type"].as_str().unwrap();
        assert!(["query", "datasource"].contains(&kind) && variable["name"].is_string(), "{variable}");
    }
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title} is not on the grid of 24 columns");
        for place in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (row, column))) {
            assert!(taken.insert(place), "{title} lies on another panel");
        }
        if panel["type"] == "row" {
            assert!(panel["collapsed"] == false && panel["panels"].as_array().is_some_and(Vec::is_empty), "{title}");
            continue;
        }
        assert_eq!(panel["type"], "timeseries", "{title}");
        let names: Vec<_> = panel["targets"].as_array().unwrap().iter().map(|target| &target["refId"]).collect();
        let different: BTreeSet<&str> = names.iter().map(|name| name.as_str().unwrap()).collect();
        assert!(!names.is_empty() && different.len() == names.len(), "{title}: {names:?}");
        let defaults = &panel["fieldConfig"]["defaults"];
        assert!(defaults["unit"].is_string() && panel["fieldConfig"]["overrides"].is_array(), "{title}");
        let sources = panel["targets"].as_array().unwrap().iter().chain([panel]);
        for source in sources.map(|it| &it["datasource"]) {
            assert_eq!((&source["type"], &source["uid"]), (&"prometheus".into(), &"${datasource}".into()), "{title}");
        }
    }
}

#[test]
fn the_dashboard_uses_variables_that_it_has() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let mut known: BTreeSet<&str> = variables.map(|variable| variable["name"].as_str().unwrap()).collect();
    // Grafana's own variables.
    known.extend(["__rate_interval", "__all"]);
    let used = DASHBOARD.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        &rest[..rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len())]
    });
    let unknown: BTreeSet<&str> = used.filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
