use std::collections::BTreeSet;

use super::{commands, figures, is_fresh, knobs, knobs_of_product};
use crate::stat::tests::report;

#[test]
#[cfg_attr(not(feature = "object"), ignore = "the commands of volumes exist with stores alone")]
fn the_page_of_commands_is_what_the_command_tells_of_itself() {
    is_fresh("docs/reference/commands.md", &commands());
}

#[test]
fn the_page_of_figures_is_what_their_tables_give() {
    is_fresh("docs/reference/counters.md", &figures());
}

#[test]
fn the_page_of_knobs_is_what_their_tables_give() {
    is_fresh("docs/reference/knobs.md", &knobs());
}

/// A figure has one text: its JSON names are those of its tables, and no text stands twice on the page.
#[test]
fn each_figure_in_json_has_a_row_and_each_row_has_one_text() {
    let page = figures();
    let mut report = serde_json::to_value(report(7)).unwrap();
    report["devices"][0]["names_stalled_ns"] = 1.into();
    for part in [&report["devices"][0], &report["cache"], &report["nfs"]] {
        for name in part.as_object().unwrap().keys() {
            assert!(page.contains(&format!("\n| `{name}` |")), "{name} has no row");
        }
    }
    let mut texts = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let text = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let is_short = text.split_whitespace().count() < 4;
        assert!(texts.insert(text.to_owned()) || is_short, "twice: {text}");
    }
    assert!(texts.len() > 100);
}

/// A knob without a person who turns it is a constant.
#[test]
fn for_each_knob_of_the_product_it_is_said_who_turns_it() {
    let page = include_str!("../../../../docs/develop/decisions/knobs.md");
    let mut named: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut knobs = knobs_of_product();
    named.sort_unstable();
    knobs.sort_unstable();
    assert_eq!(named, knobs);
}
