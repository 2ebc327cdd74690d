use super::{Table, ratio, short};

#[test]
fn figures_have_three_digits_and_ratios_their_range() {
    let shown = [0.123, 4.567, 99.96, 123.4, 999.6, 12_345.0, 1_234_567.0].map(short);
    assert_eq!(shown, ["0.12", "4.57", "100", "123", "1,000", "12,300", "1,230,000"]);
    assert_eq!(ratio(Some([4.0, 2.0, 60.0])), "**4.00×** (2.00–60.0)");
    assert_eq!(ratio(None), "–");
}

#[test]
fn a_table_has_a_head_and_its_rows() {
    let mut table = Table::new(["case", "afflux"]);
    table.row(["hit".to_owned(), short(50.0)]);
    assert_eq!(table.to_string(), "| case | afflux |\n|-|-|\n| hit | 50.0 |\n");
}
