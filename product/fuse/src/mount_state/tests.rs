use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

fn memory(words: &[u64]) -> MountState {
    let words: Vec<AtomicU64> = words.iter().copied().map(AtomicU64::new).collect();
    MountState { words: Arc::new(words), nodes: 64 }
}

// rule: a mount's memory of another form is refused
// kept in: `product/fuse/src/mount_state.rs`
#[test]
fn memory_of_another_form_is_refused() {
    let state = MountState::fresh(memory(&[0; PERSISTED_WORDS_MIN]).words).unwrap();
    state.note_agreed(Agreed { minor: 45, flags: 0 });
    let inherited = || MountState::inherited(Arc::clone(&state.words)).err();
    assert_eq!(inherited(), None);
    for form in [FORM - 1, FORM + 1] {
        state.word(at::FORM).store(form, Ordering::Relaxed);
        state.word(at::FORM_CHECK).store(state.form_check(), Ordering::Relaxed);
        assert_eq!(inherited(), Some(MountStateError::Form));
    }
}

#[test]
fn a_number_that_the_kernel_gives_again_is_a_new_request() {
    let state = MountState::fresh(memory(&[0; PERSISTED_WORDS_MIN]).words).unwrap();
    let begin = |unique, value, object| BegunChange::begin(Some(&state.changes()), unique, 0, value, object);
    begin(8, 1, 2).unwrap().ended(&Ok(()));
    let changes = state.changes();
    let new = BegunChange::begin(Some(&changes), 8, 0, 3, 4).unwrap();
    assert_eq!(new.before, Before::Nothing);
    let again = || begin(8 | UNIQUE_RESENT, 5, 6).map(|again| again.before);
    assert_eq!(again(), Ok(Before::Begun { value: 3, object: 4 }));
    new.forget();
    assert_eq!(again(), Ok(Before::Nothing));
}

// rule: a request that a server has refused is refused once more after a kill, whatever was changed since
// kept in: `product/fuse/src/mount_state.rs`
#[test]
fn a_refused_change_stays_refused() {
    let state = MountState::fresh(memory(&[0; PERSISTED_WORDS_MIN]).words).unwrap();
    let begin = |unique| BegunChange::begin(Some(&state.changes()), unique, 0, 1, 0);
    begin(8).unwrap().ended(&Err::<(), _>(VolumeError::Exists));
    for _ in 0..2 {
        assert_eq!(begin(8 | UNIQUE_RESENT).err(), Some(Errno::from(VolumeError::Exists)));
    }
    assert!(begin(8).is_ok(), "another request with its number");
}
