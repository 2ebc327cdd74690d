use super::*;

fn line(figures: &Figures, load: Load) -> String {
    let text = markdown(figures);
    text.lines().find(|line| line.starts_with(&format!("| {} |", load.name()))).unwrap().to_owned()
}

#[test]
fn a_goal_is_compared_with_the_same_round() {
    let mut figures = Figures::default();
    for (raw, afflux) in [(100.0, 95.0), (200.0, 178.0), (50.0, 47.0)] {
        figures.note(Load::StreamWrite, Who::Raw, raw);
        figures.note(Load::StreamWrite, Who::Afflux, afflux);
    }
    let line = line(&figures, Load::StreamWrite);
    assert!(line.ends_with("| 0.94 (0.89–0.95) | ≥ 0.9 of raw |"), "{line}");
}

#[test]
fn each_kind_of_goal_can_be_missed() {
    let mut figures = Figures::default();
    figures.note(Load::Commit, Who::Raw, 30.0);
    for (load, value) in [(Load::Commit, 33.5), (Load::CommitOfMany, 49.0), (Load::SmallPuts, 151.0)] {
        figures.note(load, Who::Afflux, value);
        let line = line(&figures, load);
        assert!(line.ends_with(", missed |"), "{line}");
    }
    assert!(line(&figures, Load::TakeOver).ends_with("| – | ≤ 4, missed |"), "a goal without figures is not reached");
}
