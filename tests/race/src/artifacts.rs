//! Files besides the tables: a row of JSON for each contender in each case, and a page with plots.
//!
//! Owns: the names of both files, the fields of a row, the contents of plots.
//! Does not own: the form of rows and plots (`report`).
//! Invariants: the rows have every figure of the tables, with the figures of each round.

use std::path::Path;

use afflux_report::{Bar, Bars, Fields, HtmlPage, Quantity, Row, FigureSource};

use crate::case::{Case, Group, Outcome};
use crate::markdown;

const ROWS: &str = "race.json";
const PAGE: &str = "race.html";

fn row(group: &Group, case: &Case, outcome: &Outcome) -> Row {
    let params = Fields::new().with("group", group.title).with("case", case.name.as_str()).with("unit", group.unit);
    let mut metrics = Fields::new();
    match &outcome.rounds {
        Err(why) => metrics.push("not_raced", why.as_str()),
        Ok(rounds) => {
            if let Some([middle, least, most]) = outcome.figure() {
                metrics = metrics.with("median", middle).with("least", least).with("most", most);
            }
            if let Some([middle, least, most]) = case.ratio(outcome, group.more_is_better) {
                metrics = metrics.with("ratio", middle).with("ratio_least", least).with("ratio_most", most);
            }
            metrics.push("rounds", rounds.clone());
            outcome.beside.iter().for_each(|(name, rounds)| metrics.push(*name, rounds.clone()));
        }
    }
    Row {
        experiment: "race".to_owned(),
        variant: outcome.name.to_owned(),
        params,
        metrics,
        published: Fields::new(),
        source: FigureSource::Measured,
    }
}

/// Afflux's ratio to each of the others, as bars.
fn bars(group: &Group) -> Option<Bars> {
    let mut others: Vec<&'static str> = Vec::new();
    for outcome in group.cases.iter().flat_map(|case| case.results.iter().skip(1)) {
        if !others.contains(&outcome.name) {
            others.push(outcome.name);
        }
    }
    let mut bars = Bars::new(group.title, "times the other's", Quantity::Plain("×"), others.iter().copied());
    bars = bars.note("Above 1 Afflux is better; the thin lines reach from the least to the most of the rounds.");
    for case in &group.cases {
        let of = |name: &&str| {
            let [middle, least, most] = case.ratio(case.outcome(name)?, group.more_is_better)?;
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
            case.results.iter().for_each(|outcome| rows.push_str(&format!("{}\n", row(group, case, outcome))));
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
