use super::*;

#[test]
fn a_window_grows_to_its_largest() {
    assert_eq!([1, 4, 8, 16, 32].map(next_window), [4, 8, 16, 32, 32]);
}
