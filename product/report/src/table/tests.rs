use super::{Align, Cell, Table};
use crate::terminal::Terminal;

fn jobs() -> Table {
    let mut table = Table::new("Jobs", &[("job", Align::Left), ("rate", Align::Right), ("note", Align::Left)]);
    table.row(["backup", "24.8 MB/s", "µs"]);
    table.row(["漢字", "1 MB/s"]);
    table
}

#[test]
fn columns_line_up_and_lines_have_no_blanks_at_their_ends() {
    let text = jobs().text(Terminal::PLAIN);
    assert_eq!(text, "Jobs\n  job           rate   note\n  backup   24.8 MB/s   µs\n  漢字        1 MB/s\n");
}

#[test]
fn flagged_cells_have_an_asterisk_and_the_others_stay_in_line() {
    let mut table = Table::new("", &[("ours", Align::Right), ("theirs", Align::Right)]);
    table.row([Cell::from("1"), Cell::from("5")]);
    table.row([Cell::flagged("23"), Cell::from("6")]);
    table.note("* differs");
    assert_eq!(table.text(Terminal::PLAIN), "  ours    theirs\n     1         5\n    23*        6\n  * differs\n");
    assert!(table.html().contains("23<b>*</b></td>"));
}

#[test]
fn pages_have_caption_headers_and_inert_text() {
    let mut table = Table::new("a & b", &[("x", Align::Right), ("y", Align::Left)]);
    table.row(["<script>"]);
    table.row(["", "1"]);
    let html = table.html();
    assert!(html.contains("<caption><span>a &amp; b</span></caption>"));
    assert!(html.contains("<th scope=\"col\" class=\"number\">x</th>"));
    assert!(html.contains("<td class=\"number\">&lt;script&gt;</td><td></td>"));
}

#[test]
fn a_row_that_is_too_long_loses_nothing() {
    let mut table = Table::new("", &[("x", Align::Left)]);
    table.row(["1", "2"]);
    assert!(table.text(Terminal::PLAIN).contains("1   2"));
    assert!(table.html().contains("<td>2</td>"));
    assert!(Table::new("", &[]).is_empty());
}

#[test]
fn a_column_without_any_text_is_left_out() {
    let mut table = Table::new("", &[("x", Align::Left), ("published", Align::Right), ("y", Align::Right)]);
    table.row(["a", "", "1"]);
    table.row(["b", "", "2"]);
    assert_eq!(table.text(Terminal::PLAIN), "  x   y\n  a   1\n  b   2\n");
    assert!(!table.html().contains("published"));
}

#[test]
fn a_table_that_a_telephone_cannot_show_whole_says_so() {
    let columns: Vec<String> = (0..9).map(|at| format!("figure {at}")).collect();
    let of = |count: usize| {
        let columns: Vec<_> = columns.iter().take(count).map(|title| (title.as_str(), Align::Right)).collect();
        let mut table = Table::new("", &columns);
        table.row(vec!["12,345.678"; count]);
        table.html()
    };
    assert!(!of(3).contains("class=\"hint"));
    assert!(of(5).contains("class=\"hint below-600\""));
    let mut names = Table::new("", &[("a name", Align::Left), ("figure", Align::Right)]);
    names.row(["a very long name that a telephone breaks into lines, as it is the first column", "1"]);
    assert!(!names.html().contains("below-600"), "{}", names.html());
    assert!(of(9).contains("class=\"hint below-1200 below-600\""));
}

#[test]
fn a_note_is_one_paragraph_on_a_page_and_lines_on_a_terminal() {
    let mut table = Table::new("", &[("x", Align::Left)]);
    table.row(["1"]);
    let note = "word ".repeat(40).trim_end().to_owned();
    table.note(note.as_str());
    assert!(table.html().contains(&format!("<p class=\"note\">{note}</p>")));
    let text = table.text(Terminal::PLAIN);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line.len() <= 120 && line.starts_with("  word ")), "{lines:?}");
}

#[test]
fn on_a_telephone_the_first_column_is_as_wide_as_its_names_up_to_a_bound() {
    let of = |name: &str| {
        let mut table = Table::new("", &[("x", Align::Left), ("y", Align::Right)]);
        table.row([name, "1"]);
        let html = table.html();
        let (_, style) = html.split_once("--first:").unwrap();
        style.split_once("px").unwrap().0.parse::<u32>().unwrap()
    };
    assert!((60..120).contains(&of("backup")), "{}", of("backup"));
    assert_eq!(of("linux-2.6.31, let through while the flusher is at work"), 136);
}

#[test]
fn sentences_may_be_broken_and_figures_may_not() {
    let mut table = Table::new("", &[("figure", Align::Right), ("why", Align::Left), ("name", Align::Left)]);
    table.row(["12,345,678,901,234,567,890,123", "it is a sentence and has more than a few words", "usb-stick"]);
    let html = table.html();
    assert!(html.contains("<td class=\"words\">it is") && html.contains("<td class=\"number\">12"), "{html}");
    assert!(html.contains("<td>usb-stick</td>"));
}

#[test]
fn on_a_page_names_are_one_column_and_in_every_row() {
    let columns = [("job", Align::Left), ("call", Align::Left), ("figure", Align::Left), ("afflux", Align::Right)];
    let mut table = Table::new("", &columns).named_by(3);
    table.row(["backup", "write", "p50", "1"]);
    table.row(["", "", "p99", "2"]);
    table.row(["", "fsync", "p50", "3"]);
    table.row(["disk", "", "busy", "4"]);
    table.row(["", "", "seeks", "5"]);
    let html = table.html();
    assert!(
        html.contains("<th scope=\"col\">job, call, figure</th><th scope=\"col\" class=\"number\">afflux</th>"),
        "{html}"
    );
    for (name, figure) in [
        ("backup, write, p50", 1),
        ("backup, write, p99", 2),
        ("backup, fsync, p50", 3),
        ("disk, busy", 4),
        ("disk, seeks", 5),
    ] {
        assert!(html.contains(&format!("<td>{name}</td><td class=\"number\">{figure}</td>")), "{name}: {html}");
    }
    assert!(table.text(Terminal::PLAIN).contains("               p99"), "a terminal has them apart");
}
