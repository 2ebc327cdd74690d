//! Files besides the tables: a row of JSON for each contender in each case, and a page with plots.
//!
//! Owns: the names of both files, the fields of a row, the contents of plots.
//! Does not own: the form of rows and plots (`report`).
//! Invariants: the rows have every figure of the tables, with the figures of each round.

use std::path::Path;

use afflux_report::{Bar, Bars, Fields, FigureSource, HtmlPage, Quantity, Row};

use crate::case::{Case, Group};
use crate::markdown;

const ROWS: &str = "race.json";
const PAGE: &str = "race.html";

fn row(group: &Group, case: &Case, who: &'static str) -> Row {
    let params = Fields::new().with("group", group.title).with("case", case.name.as_str()).with("unit", group.unit);
    let mut metrics = Fields::new();
    if let Some((_, why)) = case.figures.out().find(|(out, _)| *out == who) {
        metrics.push("not_raced", why.as_str());
    }
    if let Some([middle, least, most]) = case.figure(who) {
        let rounds: Vec<f64> = case.figures.of(who).iter().map(|figure| figure.value).collect();
        metrics = metrics.with("median", middle).with("least", least).with("most", most).with("rounds", rounds);
        for (at, name) in group.beside.iter().enumerate() {
            metrics.push(*name, case.figures.of(who).iter().map(|figure| figure.beside[at]).collect::<Vec<f64>>());
        }
    }
    if let Some([middle, least, most]) = case.ratio(who, group.more_is_better) {
        metrics = metrics.with("ratio", middle).with("ratio_least", least).with("ratio_most", most);
    }
    Row {
        experiment: "race".to_owned(),
        variant: who.to_owned(),
        params,
        metrics,
        published: Fields::new(),
        source: FigureSource::Measured,
    }
}

/// Afflux's ratio to each of the others, as bars.
fn bars(group: &Group) -> Option<Bars> {
    let mut others: Vec<&'static str> = Vec::new();
    for name in group.cases.iter().flat_map(Case::others) {
        if !others.contains(&name) {
            others.push(name);
        }
    }
    let mut bars = Bars::new(group.title, "times the other's", Quantity::Plain("×"), others.iter().copied());
    bars = bars.note("Above 1 Afflux is better; the thin lines reach from the least to the most of the rounds.");
    for case in &group.cases {
        let of = |name: &&'static str| {
            let [middle, least, most] = case.ratio(name, group.more_is_better)?;
            Some(Bar::new(middle).within(least, most))
        };
        bars = bars.group(case.name.as_str(), others.iter().map(of).collect());
    }
    (!others.is_empty()).then_some(bars)
}

/// Writes both files.
pub(crate) fn write(directory: &Path, groups: &[Group]) -> Result<(), String> {
    let mut rows = String::new();
    let mut page = HtmlPage::new("Afflux beside the kernel's page cache and other caches", "measured");
    for group in groups {
        for case in &group.cases {
            case.figures.contenders().for_each(|who| rows.push_str(&format!("{}\n", row(group, case, who))));
        }
        page.section(group.title);
        page.paragraph(&group.words.replace('*', "").replace('`', ""));
        if let Some(bars) = bars(group) {
            page.figure(bars);
        }
    }
    page.section("All figures");
    page.listing(&markdown::text(groups));
    let keep = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    keep(ROWS, &rows)?;
    keep(PAGE, &page.html("cargo xtask race"))
}
