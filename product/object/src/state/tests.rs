use super::*;
use crate::file::END;

// rule: nothing is read from the records for a new file
// kept in: `product/object/src/state.rs`, `product/object/src/tree/make.rs`
#[test]
fn a_new_file_is_known_whole_until_memory_is_full() {
    let limits = VolumeLimits { memory_extents: 64, ..VolumeLimits::default() };
    let mut state = VolumeState::new(Broken::default());
    state.begin_file(7, &limits, Sequence::default());
    let file = state.file(7);
    assert_eq!(file.newest_body(), Some(Body::default()));
    assert_eq!(file.map.gap(0, END), None, "no part of its map is to be read");
    for ino in 8..500 {
        state.begin_file(ino, &limits, Sequence::default());
    }
    assert!(state.files.len() <= 64, "{} files that nobody uses are in memory", state.files.len());
    assert!(!state.files.contains_key(&7), "the oldest ones are forgotten");
}
