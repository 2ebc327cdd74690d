#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

static CELLS: [Cells; 4] = [
    Cells::of(Label::PutIn, "the queue", &["requests"]),
    Cells::of(Label::Chosen, "the speed before", &["speed"])
        .only(&[("variant", "old"), ("size", "4|6")])
        .beside_published(),
    Cells::of(Label::HoldOut, "the speed after", &["speed"]).only(&[("variant", "new")]).beside_published(),
    Cells::of(Label::Transcribed, "the reads", &["reads"]),
];

fn row(variant: &str, size: u64, published: Option<u64>) -> Row {
    let params = Fields::new().with("size", size).with("requests", 128);
    let printed = published.map_or_else(Fields::new, |speed| Fields::new().with("speed", speed));
    crate::machine::row("test", variant, params, Fields::new().with("speed", 7).with("waits", 1), printed)
}

#[test]
fn a_label_belongs_to_a_cell() {
    let of = |row: &Row, name| label_of(&CELLS, row, name);
    assert_eq!(of(&row("old", 4, Some(8)), "speed"), Some(Label::Chosen));
    assert_eq!(of(&row("old", 5, Some(8)), "speed"), Some(Label::Predicted), "this size was not matched");
    assert_eq!(of(&row("old", 6, None), "speed"), Some(Label::Predicted), "nothing is published of this machine");
    assert_eq!(of(&row("new", 4, Some(8)), "speed"), Some(Label::HoldOut));
    assert_eq!(of(&row("old", 4, Some(8)), "waits"), Some(Label::Predicted));
    let measured = Row { source: FigureSource::Measured, ..row("new", 4, None) };
    assert_eq!(of(&measured, "speed"), None);
}

#[test]
fn the_line_tells_what_is_there_and_nothing_else() {
    let line = |rows: &[Row]| {
        let mut seen = SeenLabels::new(&CELLS);
        rows.iter().for_each(|row| seen.add(row));
        seen.line()
    };
    assert_eq!(
        line(&[row("old", 4, Some(8))]),
        "put in: the queue; transcribed: nothing; chosen to match: the speed before; predicted: the rest; hold-out: nothing"
    );
    assert!(
        line(&[row("new", 4, Some(8))])
            .ends_with("chosen to match: nothing; predicted: the rest; hold-out: the speed after")
    );
}

#[test]
fn rows_and_tables_carry_the_labels() {
    let row = row("old", 4, Some(8));
    let json = json(&CELLS, &row);
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
    assert!(json.starts_with(r#"{"experiment":"test","variant":"old""#), "{json}");
    assert!(json.ends_with(r#""labels":{"speed":"chosen to match"}}"#), "{json}");
    assert_eq!(marked("7".to_owned(), Some(Label::Chosen)), "7 m");
    assert_eq!(marked("7".to_owned(), Some(Label::Predicted)), "7");
    assert_eq!(note(&[None, Some(Label::Predicted)]), None);
    assert_eq!(
        note(&[Some(Label::HoldOut), Some(Label::Chosen)]).unwrap(),
        "Behind a figure, m: chosen to match, h: hold-out."
    );
}
