use super::*;

#[test]
fn of_an_even_number_the_median_is_between_the_two_in_the_middle() {
    assert_eq!(median_and_range([1.75, 0.5]), Some([1.125, 0.5, 1.75]));
    assert_eq!(median_and_range([4.0, 1.0, 2.0, 3.0]), Some([2.5, 1.0, 4.0]));
    assert_eq!(median_and_range([3.0, 1.0, 2.0]), Some([2.0, 1.0, 3.0]));
    assert_eq!((median_and_range([]), median([])), (None, None));
}

#[test]
fn a_ratio_compares_figures_of_one_round() {
    assert_eq!(ratios([(2.0, 1.0), (8.0, 2.0), (9.0, 3.0)]), Some([3.0, 2.0, 4.0]));
}
