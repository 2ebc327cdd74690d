//! The tables, as Markdown.
//!
//! Owns: rows and columns, marks of goals reached.
//! Does not own: the figures (`case`), their digits (`afflux_rig`).
//! Invariants: each ratio has the least and the most of its rounds. A contender that did not run has a dash, and its
//! reason is below the table.

use afflux_rig::{Table, ratio, remarks, short};

use crate::case::{Case, Group};

fn columns(group: &Group) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in group.cases.iter().flat_map(|case| case.figures.contenders()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn cell(group: &Group, case: &Case, who: &'static str) -> String {
    if case.figures.contenders().all(|known| known != who) {
        return String::new();
    }
    let Some([middle, ..]) = case.figure(who) else { return "–".to_owned() };
    let mut figure = short(middle);
    if group.shows_beside {
        let medians = (0..group.beside.len()).filter_map(|at| case.figures.median(who, |figure| figure.beside[at]));
        let beside: Vec<String> = medians.map(short).collect();
        figure.push_str(&format!(" ({})", beside.join(" / ")));
    }
    if who != case.own()
        && let Some(found) = case.ratio(who, group.more_is_better)
    {
        figure.push_str(&format!(", {}", ratio(Some(found))));
    }
    figure
}

fn goal(group: &Group, case: &Case) -> String {
    let Some(goal) = &case.goal else { return String::new() };
    let met = match case.ratio(goal.against, group.more_is_better) {
        Some([ratio, ..]) if ratio >= goal.ratio => "met",
        Some(_) => "missed",
        None => "not raced",
    };
    format!("{}× {}: {met}", short(goal.ratio), goal.against)
}

fn table(group: &Group) -> Table {
    let names = columns(group);
    let has_goals = group.cases.iter().any(|case| case.goal.is_some());
    let first = format!("{}, {}", group.title, group.unit);
    let head = [first.as_str()].into_iter().chain(names.iter().copied()).chain(has_goals.then_some("wanted"));
    let mut table = Table::new(head);
    for case in &group.cases {
        let cells = names.iter().map(|name| cell(group, case, name));
        let goal = has_goals.then(|| goal(group, case));
        table.row([case.name.clone()].into_iter().chain(cells).chain(goal));
    }
    table
}

/// All tables, each with its words above and its remarks below.
pub(crate) fn text(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups.iter().filter(|group| !group.cases.is_empty() || !group.remarks.is_empty()) {
        text.push_str(&format!("**{}.** {}\n\n", group.title, group.words));
        if !group.cases.is_empty() {
            text.push_str(&table(group).to_string());
            text.push('\n');
        }
        let cases = group.cases.iter().map(|case| (case.name.as_str(), &case.figures));
        let remarks: Vec<String> = group.remarks.iter().cloned().chain(remarks(cases, |who| who)).collect();
        remarks.iter().for_each(|remark| text.push_str(&format!("- {remark}\n")));
        if !remarks.is_empty() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
