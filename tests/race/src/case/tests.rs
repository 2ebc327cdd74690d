use super::{Case, Outcome};

fn outcome(name: &'static str, rounds: &[f64]) -> Outcome {
    Outcome { name, rounds: Ok(rounds.to_vec()), beside: Vec::new() }
}

#[test]
fn a_ratio_is_of_the_two_runs_of_a_round_and_that_of_two_lies_between() {
    let case = Case {
        name: "a".to_owned(),
        goal: None,
        results: vec![outcome("afflux", &[10.0, 20.0]), outcome("peer", &[20.0, 80.0])],
    };
    assert_eq!(case.ratio(&case.results[1], false), Some([3.0, 2.0, 4.0]));
    assert_eq!(case.ratio(&case.results[1], true), Some([0.375, 0.25, 0.5]));
}

#[test]
fn who_did_not_run_has_neither_figure_nor_ratio() {
    let mut absent = outcome("peer", &[]);
    absent.rounds = Err("not there".to_owned());
    let case = Case { name: "a".to_owned(), goal: None, results: vec![outcome("afflux", &[1.0]), absent] };
    assert_eq!(case.results[1].figure(), None);
    assert_eq!(case.ratio(&case.results[1], false), None);
}
