use super::{Processors, Stolen};

#[test]
fn stolen_time_is_the_eighth_figure_of_all_processors() {
    let at = |idle: u64, stolen: u64| Processors::read(&format!("cpu  10 0 10 {idle} 0 0 0 {stolen} 99 0\ncpu0 1"));
    let spoilt = at(0, 5).stolen_at(&at(1_000, 10));
    assert_eq!((spoilt, spoilt.spoils_figures()), (Stolen { ms: 50, per_mille: 4 }, true));
    let quiet = at(0, 5).stolen_at(&at(1_000, 5));
    assert_eq!((quiet, quiet.spoils_figures()), (Stolen { ms: 0, per_mille: 0 }, false));
    assert_eq!(Processors::read("").stolen_at(&Processors::read("")), Stolen { ms: 0, per_mille: 0 });
}
