use afflux_scratch::Stolen;

use super::judge;
use crate::failure::Failure;

#[test]
fn a_race_on_a_machine_with_stolen_time_has_no_table() {
    let of = |per_mille: u64| Stolen { ms: 10 * per_mille, per_mille };
    assert!(matches!(judge(false, of(3)), Err(Failure::Stolen { per_mille: 3 })));
    assert!(judge(false, of(2)).is_ok());
    assert!(judge(true, of(3)).is_ok(), "a quick race shows no figures");
}
