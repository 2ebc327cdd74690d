use super::*;

#[test]
fn each_error_needs_a_cause_of_its_own_kind() {
    let nothing = Causes::default();
    let since_begun = Causes { since_begun: true, while_dirty: true, ..nothing };
    let while_dirty = Causes { while_dirty: true, ..nothing };
    let no_space = Causes { no_space: true, ..nothing };
    for (causes, own, sync, write) in [
        (nothing, false, false, false),
        (since_begun, true, true, true),
        (while_dirty, false, true, true),
        (no_space, false, false, true),
    ] {
        let explained = [ErrorSource::Own, ErrorSource::Sync, ErrorSource::Write].map(|told| causes.explain(told));
        assert_eq!(explained, [own, sync, write], "{causes:?}");
    }
}
