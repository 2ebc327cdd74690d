use super::*;

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn value(text: &'static str) -> Given {
    Given::Value(key(text))
}

// rule: a read of a key sees what callers gave before, also while the database has not taken it yet
#[test]
fn the_newest_change_stays_until_the_database_has_its_batch() {
    let pending = PendingKeys::default();
    let first = (Sequence(1), vec![(key("a"), value("1")), (key("b"), Given::Removed)]);
    let second = (Sequence(2), vec![(key("a"), value("2")), (key("c"), Given::Sum(1))]);
    pending.give(&first);
    pending.give(&second);
    pending.taken(&first);
    assert_eq!(pending.get(b"a"), Some(value("2")), "the first batch takes nothing of the second one away");
    assert_eq!((pending.get(b"b"), pending.get(b"c")), (None, Some(Given::Sum(1))));
    pending.taken(&second);
    assert_eq!((pending.get(b"a"), pending.get(b"c")), (None, None));
}
