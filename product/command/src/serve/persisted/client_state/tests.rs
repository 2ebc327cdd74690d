mod persisted_clients;

use std::sync::atomic::AtomicBool;

use afflux_linux_device::{IoChoice, Reactors};

use super::*;

fn words(values: &[u64]) -> Vec<AtomicU64> {
    values.iter().map(|value| AtomicU64::new(*value)).collect()
}

fn values(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn words_come_back_and_no_words_take_more_than_the_bound() {
    let full = u64::MAX;
    for value in 0..1_u32 << 10 {
        let all: Vec<u64> = (0..10).map(|at| if value >> at & 1 == 1 { full } else { 0 }).collect();
        let bytes = encode(&words(&all));
        assert!(bytes.len() <= bytes_max(all.len()), "{all:x?} takes {}", bytes.len());
        let back = words(&[0; 10]);
        assert_eq!(decode(&bytes, &back), Some(()));
        assert_eq!(values(&back), all);
    }
    assert!(encode(&words(&[0; 9])).is_empty());
    assert_eq!(encode(&words(&[1; 9])).len(), bytes_max(9));
}

#[test]
fn bytes_of_another_form_are_refused() {
    let bytes = encode(&words(&[0, 5, 6, 0, 0, 7]));
    for len in 1..bytes.len() {
        // The first run alone is whole.
        let is_whole = len == 8 + 2 * 8;
        assert_eq!(decode(&bytes[..len], &words(&[0; 6])), is_whole.then_some(()), "{len} bytes");
    }
    assert_eq!(decode(&bytes, &words(&[0; 5])), None, "a word outside");
    assert_eq!(decode(&[255; 16], &words(&[0; 6])), None);
}

#[test]
fn a_changed_list_is_persisted_whole_and_after_a_failure_with_the_next_change() {
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let (persisted, fails) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(true)));
    let (lists, failing) = (Arc::clone(&persisted), Arc::clone(&fails));
    let list = PersistedList::begin(&[1, 2], move |names| {
        if failing.load(Ordering::SeqCst) {
            return Err("a full disk".to_owned());
        }
        lists.lock().unwrap().push(names);
        Ok(())
    });
    assert!(!platform.block_on(list.change([(2, false), (3, true)].into())));
    fails.store(false, Ordering::SeqCst);
    assert!(platform.block_on(list.change(ListChange::new())));
    assert!(platform.block_on(list.change([(1, false), (2, true)].into())));
    assert_eq!(*persisted.lock().unwrap(), [vec![1, 3], vec![2, 3]]);
}
