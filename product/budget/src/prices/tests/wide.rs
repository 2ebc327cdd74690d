use super::super::{div, mul_div};

#[test]
fn quotients_are_exact_on_both_sides_of_a_word() {
    const HALF: u64 = 1 << 32;
    for (of, by, over, quotient) in [
        (7, 3, 2, 10),
        (0, u64::MAX, 1, 0),
        (HALF - 1, HALF + 1, 1, u64::MAX),
        (HALF, HALF, 1 << 8, 1 << 56),
        (HALF, HALF, 3, 6_148_914_691_236_517_205),
        (u64::MAX, u64::MAX, u64::MAX, u64::MAX),
        (u64::MAX, u64::MAX, 2, u64::MAX),
    ] {
        assert_eq!(mul_div(of, by, over), quotient, "{of} * {by} / {over}");
    }
}

#[test]
fn quotients_of_signed_numbers_truncate_on_both_sides_of_a_word() {
    let large = 1_i128 << 80;
    for (of, by, quotient) in [
        (7, 2, 3),
        (-7, 2, -3),
        (i64::MIN.into(), -1, 1 << 63),
        (large, 1 << 16, 1 << 64),
        (-large, large, -1),
        (5, large, 0),
    ] {
        assert_eq!(div(of, by), quotient, "{of} / {by}");
    }
}
