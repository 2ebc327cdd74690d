use afflux_rig::Raced;

use super::text;
use crate::case::{Case, Figure, Goal, Group};

#[test]
fn a_row_has_figures_ratios_with_their_range_and_whether_the_goal_is_met() {
    let case = |name: &str, contenders: &[&'static str], ratio| Case {
        name: name.to_owned(),
        goal: Some(Goal { against: "kernel", ratio }),
        figures: Raced::new(contenders, 3, |who, round| match who {
            "afflux" => Ok(Figure { value: 50.0, beside: vec![1.0] }),
            "kernel" => Ok(Figure { value: 100.0 * (round + 1) as f64, beside: vec![2.0] }),
            _ => Err("not installed".to_owned()),
        }),
    };
    let group = |shows_beside| Group {
        title: "Test",
        unit: "ns",
        more_is_better: false,
        words: "Words.".to_owned(),
        beside: &["cpu_us"],
        shows_beside,
        cases: vec![case("hit", &["afflux", "kernel"], 4.0), case("miss", &["afflux", "kernel", "absent"], 4.1)],
        remarks: vec!["a remark".to_owned()],
    };
    let wanted = "**Test.** Words.\n\n\
        | Test, ns | afflux | kernel | absent | wanted |\n|-|-|-|-|-|\n\
        | hit | 50.0 | 200, **4.00×** (2.00–6.00) |  | 4.00× kernel: met |\n\
        | miss | 50.0 | 200, **4.00×** (2.00–6.00) | – | 4.10× kernel: missed |\n\n\
        - a remark\n- absent: not installed\n\n";
    assert_eq!(text(&[group(false)]), wanted);
    let beside = text(&[group(true)]);
    assert!(beside.contains("| 50.0 (1.00) | 200 (2.00), **4.00×** (2.00–6.00) |"), "{beside}");
}
