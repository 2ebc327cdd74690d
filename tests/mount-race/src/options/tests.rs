use super::*;

#[test]
fn wrong_words_and_no_rounds_are_refused() {
    let of = |line: &str| Options::of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let right = of("--dir /d --afflux /a --only fsync --only untar").unwrap();
    assert!(right.wants("fsync beside a stream") && right.wants("untar") && !right.wants("burst"));
    for wrong in ["--dir /d", "--dir /d --afflux /a --rounds 0", "--dir /d --afflux /a fast", "--dir"] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}
