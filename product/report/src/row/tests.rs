use super::{Fields, FigureSource, Row};

#[test]
fn a_row_is_one_object_on_one_line_in_the_order_given() {
    let row = Row {
        experiment: "s2".to_owned(),
        variant: "ListPerClass".to_owned(),
        params: Fields::new().with("threads", 2).with("contents", "U/R/M"),
        metrics: Fields::new().with("lists_examined", 7).with("ns", 12.5).with("odd", f64::NAN).with("name", "a\nb"),
        published: Fields::new(),
        source: FigureSource::Simulated,
    };
    assert_eq!(
        row.to_string(),
        r#"{"experiment":"s2","variant":"ListPerClass","params":{"threads":2,"contents":"U/R/M"},"metrics":{"lists_examined":7,"ns":12.5,"odd":null,"name":"a\nb"},"published":{},"source":"simulated"}"#
    );
}

#[test]
fn a_name_has_one_value() {
    let fields = Fields::new().with("a", 1).with("b", 2).with("a", 3);
    assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"a":3,"b":2}"#);
    assert_eq!(fields.get("b"), Some(&2.into()));
    assert_eq!(fields.get("c"), None);
}
