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
    let html = table.html();
    assert!(html.contains("<caption>a &amp; b</caption>"));
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
