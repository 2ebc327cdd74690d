use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

fn memory(words: &[u64]) -> MountState {
    let words: Vec<AtomicU64> = words.iter().copied().map(AtomicU64::new).collect();
    MountState { words: Arc::new(words), nodes: 64 }
}

fn words(of: &MountState) -> Vec<u64> {
    of.all().iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

fn unique(slot: usize) -> u64 {
    2 * (slot as u64 + 1)
}

/// Memory of the form before, with a change in each slot. Each third one is done.
fn memory_before() -> Vec<u64> {
    let state = MountState::fresh(memory(&[0; PERSISTED_WORDS_MIN]).words).unwrap();
    state.note_agreed(Agreed { minor: 45, flags: 0 });
    let mut words = words(&state);
    words[at::FORM] = FORM_BEFORE;
    words[at::FORM_CHECK] = state.form_check(FORM_BEFORE);
    for (slot, entry) in words[FILES_AT - CHANGES * WORDS_BEFORE..FILES_AT].chunks_mut(WORDS_BEFORE).enumerate() {
        let (value, object) = (1000 + slot as u64, slot as u64);
        let state = if slot.is_multiple_of(3) { DONE } else { BEGUN };
        let check = words_checksum([unique(slot), value, object]) & !STATE_BITS;
        entry.copy_from_slice(&[unique(slot), check | state, value, object]);
    }
    words
}

fn has_all(words: &[u64]) -> bool {
    let changes = MountState::inherited(memory(words).words).unwrap().changes();
    (0..CHANGES).all(|slot| {
        let before = match slot.is_multiple_of(3) {
            true => Before::Done { object: 0 },
            false => Before::Begun { value: 1000 + slot as u64, object: slot as u64 },
        };
        changes.begin([[unique(slot), 0, 0]; 2], 0, 0).1.before(0) == before
    })
}

#[test]
fn changes_of_the_form_before_are_found_wherever_a_kill_stops_their_turn() {
    let before = memory_before();
    let turned = words(&MountState::inherited(memory(&before).words).unwrap());
    assert!(has_all(&before) && has_all(&turned));
    for stopped_at in (CHANGES_AT..FILES_AT).step_by(97).chain(FILES_AT - 9..FILES_AT) {
        let mut part = before.clone();
        part[CHANGES_AT..stopped_at].copy_from_slice(&turned[CHANGES_AT..stopped_at]);
        // The check of an entry is stored last.
        part[CHANGES_AT + (stopped_at - CHANGES_AT) / CHANGE_WORDS * CHANGE_WORDS] = 0;
        assert!(has_all(&part), "{stopped_at}");
    }
    let mut part = turned.clone();
    part[at::FORM] = FORM_BEFORE;
    assert!(has_all(&part), "the number of the form is stored last");
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
