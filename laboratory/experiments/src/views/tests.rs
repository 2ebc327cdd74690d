use afflux_report::terminal::Terminal;
use afflux_report::{Fields, Quantity};

use super::*;

const CHART: ChartView = ChartView {
    title: "Rates",
    rows: &[],
    label: "written",
    quantity: Quantity::DataRate,
    figure: ("rate", 1e6),
    within: Within::Rows,
    along: Along::Groups(&["size"]),
};

const VIEW: View = View {
    tables: &[
        TableView::of("Rates", &["size", "seed"], &[("MB/s", "rate", 1), ("waits", "waits", 0)], "")
            .only(&[("case", "one")]),
        TableView::of("Others", &[], &[("found", "found", 0)], "").detail(),
    ],
    charts: &[CHART],
    text: "# Text\n\n## found\n\n{{lines}} rows.\n\n## first\n\nOne\nline.\n",
    facts: &[("lines", |rows| Some(rows.len().to_string()))],
    labels: &[Cells::of(Label::HoldOut, "the new", &["rate"]).only(&[("variant", "new")])],
};

fn row(variant: &str, case: &str, size: u64, rate: f64, published: Option<f64>) -> Row {
    let params = Fields::new().with("case", case).with("size", size).with("seed", 1);
    let printed = published.map_or_else(Fields::new, |rate| Fields::new().with("rate", rate));
    crate::machine::row("test", variant, params, Fields::new().with("rate", rate), printed)
}

#[test]
fn rows_that_are_alike_are_a_line_and_the_published_figure_stands_beside_it() {
    let rows = [
        row("old", "one", 4, 10.0, Some(8.0)),
        row("old", "one", 4, 20.0, Some(8.0)),
        row("old", "one", 4, 12.0, Some(8.0)),
        row("new", "one", 4, 9.0, None),
        row("new", "one", 8, 9.5, None),
        row("new", "two", 4, 1.0, None),
    ];
    let findings = VIEW.findings(&rows);
    let text = findings.tables[0].text(Terminal::PLAIN);
    assert_eq!((findings.tables.len(), findings.details.len(), findings.figures.len()), (1, 0, 1));
    assert_eq!(findings.says, ["One line."]);
    assert_eq!(findings.opening, [("found", "6 rows.".to_owned())]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[2].contains("12.0 (10.0 to 20.0)") && lines[2].contains("8.0") && lines[2].contains("+50.0"),
        "{text}"
    );
    assert_eq!(lines.len(), 7, "a caption, titles, three lines, what is equal in all, and what marks say: {text}");
    assert!(lines[3].contains("9.0 h") && lines[6].contains("Behind a figure, h: hold-out."), "{text}");
    assert!(!text.contains("waits") && lines[5].contains("In all: seed 1."), "{text}");
}

#[test]
fn what_was_put_in_is_not_off() {
    const PUT_IN: &[Cells] = &[Cells::of(Label::PutIn, "the start", &["rate"])];
    let rows = [row("old", "one", 4, 10.0, Some(8.0))];
    let text = |view: View| view.findings(&rows).tables[0].text(Terminal::PLAIN);
    assert!(text(View { labels: PUT_IN, ..VIEW }).contains("10.0 p"));
    assert!(!text(View { labels: PUT_IN, ..VIEW }).contains("+25.0") && text(VIEW).contains("+25.0"));
}

/// A published column beside a variant may be another's, and the legend says whose.
#[test]
fn a_legend_names_the_variant_that_was_published() {
    let chart = ChartView { along: Along::Line("size", Quantity::Plain("MiB"), &[]), ..CHART };
    let rows = [4, 8].map(|size| {
        let row = row("august", "one", size, 10.0, Some(8.0));
        Row { params: row.params.with("published_of", "july"), ..row }
    });
    let legend = format!("{:?}", charts::figures(&chart, &rows));
    assert!(legend.contains("\"july, published\"") && !legend.contains("august, published"), "{legend}");
}

#[test]
fn one_bar_is_no_chart() {
    assert_eq!(VIEW.findings(&[row("old", "one", 4, 10.0, None)]).figures.len(), 0);
    assert_eq!(VIEW.findings(&[row("old", "one", 4, 10.0, Some(8.0))]).figures.len(), 1);
}

#[test]
fn goals_are_counted_in_the_answer() {
    let check = |met| Check { what: "is one".to_owned(), found: "1".to_owned(), met };
    let mut findings = Findings::default();
    add_checks(&mut findings, "Goals", &[check(true), check(false)]);
    assert_eq!(findings.answer, "Goals: 1 of 2 are met.");
    let text = findings.tables[0].text(Terminal::PLAIN);
    assert!(text.contains("missed*"), "{text}");
}
