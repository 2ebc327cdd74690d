//! The tables, as Markdown.
//!
//! Owns: rows and columns, digits, marks of goals reached.
//! Does not own: the figures (`case`).
//! Invariants: each ratio has the least and the most of its rounds. A contender that did not run has a dash, and its
//! reason is below the table.

use std::collections::BTreeMap;

use afflux_experiments::statistics::median_and_range;

use crate::case::{Case, Group, Outcome};

/// Three digits, with commas for thousands.
pub(crate) fn short(figure: f64) -> String {
    match figure.abs() {
        size if size >= 999.5 => {
            let unit = 10_f64.powi(size.log10().floor() as i32 - 2).max(1.0);
            let whole = ((figure / unit).round() * unit) as u64;
            let digits = whole.to_string();
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().map(|three| str::from_utf8(three).unwrap_or("")).collect();
            groups.join(",")
        }
        size if size >= 99.95 => format!("{figure:.0}"),
        size if size >= 9.995 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

fn columns(group: &Group) -> Vec<&'static str> {
    let mut names = Vec::new();
    for outcome in group.cases.iter().flat_map(|case| &case.results) {
        if !names.contains(&outcome.name) {
            names.push(outcome.name);
        }
    }
    names
}

fn cell(group: &Group, case: &Case, outcome: &Outcome) -> String {
    let Some([middle, ..]) = outcome.figure() else { return "–".to_owned() };
    let mut figure = short(middle);
    let beside = group.shown.iter().filter_map(|name| {
        let (_, rounds) = outcome.beside.iter().find(|(known, _)| known == name)?;
        median_and_range(rounds.clone()).map(|[middle, ..]| short(middle))
    });
    let beside: Vec<String> = beside.collect();
    if !beside.is_empty() {
        figure.push_str(&format!(" ({})", beside.join(" / ")));
    }
    let is_own = case.results.first().is_some_and(|own| std::ptr::eq(own, outcome));
    match case.ratio(outcome, group.more_is_better).filter(|_| !is_own) {
        Some([ratio, least, most]) => format!("{figure}, **{}×** ({}–{})", short(ratio), short(least), short(most)),
        None => figure,
    }
}

fn goal(group: &Group, case: &Case) -> String {
    let Some(goal) = &case.goal else { return String::new() };
    let ratio = case.outcome(goal.against).and_then(|outcome| case.ratio(outcome, group.more_is_better));
    let met = match ratio {
        Some([ratio, ..]) if ratio >= goal.ratio => "met",
        Some(_) => "missed",
        None => "not raced",
    };
    format!("{}× {}: {met}", short(goal.ratio), goal.against)
}

fn table(group: &Group) -> String {
    let names = columns(group);
    let has_goals = group.cases.iter().any(|case| case.goal.is_some());
    let mut text = format!("| {}, {} |", group.title, group.unit);
    names.iter().for_each(|name| text.push_str(&format!(" {name} |")));
    if has_goals {
        text.push_str(" wanted |");
    }
    text.push_str("\n|-|");
    text.push_str(&"-|".repeat(names.len() + usize::from(has_goals)));
    text.push('\n');
    for case in &group.cases {
        text.push_str(&format!("| {} |", case.name));
        for name in &names {
            let cell = case.outcome(name).map_or_else(String::new, |outcome| cell(group, case, outcome));
            text.push_str(&format!(" {cell} |"));
        }
        if has_goals {
            text.push_str(&format!(" {} |", goal(group, case)));
        }
        text.push('\n');
    }
    text
}

/// The contenders that did not run: each reason once, with its cases, unless they are all cases.
fn remarks(group: &Group) -> Vec<String> {
    let mut failed: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for case in &group.cases {
        for outcome in &case.results {
            if let Err(why) = &outcome.rounds {
                failed.entry((outcome.name, why)).or_default().push(&case.name);
            }
        }
    }
    let told = failed.into_iter().map(|((name, why), cases)| {
        let all = group.cases.iter().filter(|case| case.outcome(name).is_some()).count();
        if cases.len() == all { format!("{name}: {why}") } else { format!("{name}: {why} ({})", cases.join("; ")) }
    });
    group.remarks.iter().cloned().chain(told).collect()
}

/// All tables, each with its words above and its remarks below.
pub(crate) fn text(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups.iter().filter(|group| !group.cases.is_empty() || !group.remarks.is_empty()) {
        text.push_str(&format!("**{}.** {}\n\n", group.title, group.words));
        if !group.cases.is_empty() {
            text.push_str(&table(group));
            text.push('\n');
        }
        let remarks = remarks(group);
        remarks.iter().for_each(|remark| text.push_str(&format!("- {remark}\n")));
        if !remarks.is_empty() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
