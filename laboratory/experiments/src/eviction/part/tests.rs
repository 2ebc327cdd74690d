use super::*;

#[test]
fn a_part_is_one_in_so_many_or_a_fraction() {
    assert_eq!([Part::read("16"), Part::read("9/10")], [Ok(Part(1, 16)), Ok(Part(9, 10))]);
    assert_eq!((Part(9, 10).of(1000), Part(1, 16).of(1000)), (900, 62));
    assert_eq!((Part(1, 4).value(), Part(9, 10).value()), (4.into(), "9/10".into()));
    for wrong in ["1", "0", "2000", "10/9", "x", "1/0", "/"] {
        assert!(Part::read(wrong).expect_err(wrong).contains("2 to 1024"));
    }
}
