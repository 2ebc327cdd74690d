use super::{short, text};
use crate::case::{Case, Goal, Group, Outcome};

#[test]
fn figures_have_three_digits() {
    let shown = [0.123, 4.567, 99.96, 123.4, 999.6, 12_345.0, 1_234_567.0].map(short);
    assert_eq!(shown, ["0.12", "4.57", "100", "123", "1,000", "12,300", "1,230,000"]);
}

#[test]
fn a_row_has_figures_ratios_with_their_range_and_whether_the_goal_is_met() {
    let outcome = |name, rounds: &[f64]| Outcome { name, rounds: Ok(rounds.to_vec()), beside: Vec::new() };
    let absent = Outcome { name: "absent", rounds: Err("not installed".to_owned()), beside: Vec::new() };
    let case = |name: &str, ratio| Case {
        name: name.to_owned(),
        goal: Some(Goal { against: "kernel", ratio }),
        results: vec![outcome("afflux", &[50.0, 50.0, 50.0]), outcome("kernel", &[100.0, 200.0, 300.0])],
    };
    let mut cases = vec![case("hit", 4.0), case("miss", 4.1)];
    cases[1].results.push(absent);
    let group = Group {
        title: "Test",
        unit: "ns",
        more_is_better: false,
        words: "Words.".to_owned(),
        shown: &[],
        cases,
        remarks: vec!["a remark".to_owned()],
    };
    let wanted = "**Test.** Words.\n\n\
        | Test, ns | afflux | kernel | absent | wanted |\n|-|-|-|-|-|\n\
        | hit | 50.0 | 200, **4.00×** (2.00–6.00) |  | 4.00× kernel: met |\n\
        | miss | 50.0 | 200, **4.00×** (2.00–6.00) | – | 4.10× kernel: missed |\n\n\
        - a remark\n- absent: not installed\n\n";
    assert_eq!(text(&[group]), wanted);
}
