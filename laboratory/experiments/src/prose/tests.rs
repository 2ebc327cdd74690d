use super::*;

#[test]
fn a_sentence_tells_only_facts_of_its_rows() {
    let facts: &[Fact] = &[("rows", |rows| Some(rows.len().to_string())), ("more", |_| None)];
    let text = "There are {{rows}} rows of 0.5 s. Nobody ran {{more}}. So much for {{rows}}.";
    assert_eq!(filled(text, facts, &[]), "There are 0 rows of 0.5 s. So much for 0.");
}

#[test]
fn a_figure_is_of_the_first_row_that_fits_in_its_form() {
    let row = |variant, stalls: f64, printed: Option<f64>| {
        let metrics = Fields::new().with("stalls", stalls);
        let published = printed.map_or_else(Fields::new, |printed| Fields::new().with("stalls", printed));
        crate::machine::row("test", variant, Fields::new().with("size", 4), metrics, published)
    };
    let rows = [row("old", 1234.56, None), row("new", 0.5, Some(2.0)), row("new", 7.0, Some(7.0))];
    for (place, text) in [
        ("stalls, variant=old, .1", "1234.6"),
        ("stalls, variant=old, size=4, count", "1,235"),
        ("stalls, variant=new, percent", "50"),
        ("stalls, size=4, of-published", "25"),
    ] {
        assert_eq!(filled(&format!("It is {{{{{place}}}}}."), &[], &rows), format!("It is {text}."));
    }
    assert_eq!(filled("It is {{stalls, size=5, .0}}.", &[], &rows), "");
}
