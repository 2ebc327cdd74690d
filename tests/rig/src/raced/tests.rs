use super::{Raced, remarks, run_order};

#[test]
fn nobody_works_twice_in_a_row_and_two_change_places() {
    for count in 3..8_usize {
        let all: Vec<usize> = (0..count).collect();
        let order: Vec<usize> = (0..20).flat_map(|round| run_order(&all, round)).collect();
        assert!(order.windows(2).all(|two| two[0] != two[1]), "{order:?}");
        for who in 0..count {
            let before: std::collections::BTreeSet<usize> =
                order.windows(2).filter(|two| two[1] == who).map(|two| two[0]).collect();
            assert!(before.len() > 1, "{who} always follows the same of {count}");
        }
    }
    assert_eq!([run_order(&['a', 'b'], 0), run_order(&['a', 'b'], 1)], [['a', 'b'], ['b', 'a']]);
}

#[test]
fn a_ratio_is_of_the_two_runs_of_a_round_and_that_of_two_lies_between() {
    let figures = [("afflux", [10.0, 20.0]), ("peer", [20.0, 80.0])];
    let raced = Raced::new(&["afflux", "peer"], 2, |who, round| {
        figures.iter().find(|(name, _)| *name == who).map(|(_, all)| all[round]).ok_or(())
    });
    assert_eq!(raced.ratio("peer", "afflux", |it| *it), Some([3.0, 2.0, 4.0]));
    assert_eq!(raced.ratio("afflux", "peer", |it| *it), Some([0.375, 0.25, 0.5]));
    assert_eq!(raced.ratio("afflux", "nobody", |it| *it), None);
    assert!(raced.whole().is_ok());
}

#[test]
fn who_fails_is_out_and_the_others_go_on() {
    let raced = Raced::new(
        &["works", "fails"],
        3,
        |who, round| {
            if who == "fails" && round == 1 { Err("no luck") } else { Ok(1.0) }
        },
    );
    assert_eq!((raced.of("works").len(), raced.of("fails").len()), (3, 0));
    assert_eq!(raced.out().collect::<Vec<_>>(), [("fails", &"no luck")]);
    assert_eq!(raced.median("fails", |it| *it), None);
    assert_eq!(raced.whole().unwrap_err(), "no luck");
}

#[test]
fn a_reason_is_told_once_with_its_cases_unless_they_are_all() {
    let raced = |fails: &'static [&'static str]| {
        Raced::new(
            &["a", "b"],
            1,
            |who, _| if fails.contains(&who) { Err("not installed".to_owned()) } else { Ok(1.0) },
        )
    };
    let cases = [("hit", raced(&["b"])), ("miss", raced(&["a", "b"]))];
    let told = remarks(cases.iter().map(|(name, raced)| (*name, raced)), |who| who);
    assert_eq!(told, ["a: not installed (miss)", "b: not installed"]);
}
