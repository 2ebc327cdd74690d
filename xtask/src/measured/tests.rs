use super::Place;

#[test]
fn the_table_takes_the_place_of_the_one_before() {
    let place = Place { document: "a document", begin: "<!-- begin -->", end: "<!-- end -->" };
    let Place { begin, end, .. } = place;
    let document = format!("before\n{begin}\nold\n{end}\nafter\n");
    let text = place.placed(&document, "new").unwrap();
    assert_eq!(text, format!("before\n{begin}\n\nnew\n{end}\nafter\n"));
    assert_eq!(place.placed(&text, "new").unwrap(), text);
    place.placed("no place", "new").unwrap_err();
}
