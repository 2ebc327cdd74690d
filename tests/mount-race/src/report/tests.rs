use super::*;
use crate::cases::{self, Case};

/// A case with these values of ours, of the bare server, and stolen milliseconds, by rounds.
fn raced(rounds: &[(f64, f64, u64)]) -> Raced {
    let case: Case = cases::all()[0];
    let figures = afflux_rig::Raced::new(&[Who::Afflux, Who::Bare], rounds.len(), |who, round| {
        let (ours, bare, stolen_ms) = rounds[round];
        Ok(match who {
            Who::Afflux => Figure { value: ours, stolen_ms, ..Figure::default() },
            _ => Figure { value: bare, ..Figure::default() },
        })
    });
    Raced { case, figures }
}

fn row(raced: Raced) -> String {
    goals(&[raced]).to_string().lines().nth(2).unwrap_or_default().to_owned()
}

#[test]
fn a_goal_is_judged_by_the_median_of_the_rounds_own_ratios() {
    let met = row(raced(&[(6.0, 5.0, 0), (12.0, 10.0, 0), (30.0, 10.0, 0)]));
    assert!(met.contains("**1.20×** (1.20×–3.00×)") && met.ends_with("| met |"), "{met}");
    let missed = row(raced(&[(6.0, 4.0, 0)]));
    assert!(missed.ends_with("| **missed** |"), "{missed}");
}

#[test]
fn stolen_time_and_absent_contenders_leave_no_verdict() {
    let stolen = row(raced(&[(5.0, 5.0, 0), (5.0, 5.0, 10)]));
    assert!(stolen.ends_with("| no verdict: time was stolen |"), "{stolen}");
    let second = goals(&[raced(&[(5.0, 5.0, 0)])]).to_string();
    assert!(second.lines().nth(3).unwrap_or_default().ends_with("| not measured |"), "{second}");
}
