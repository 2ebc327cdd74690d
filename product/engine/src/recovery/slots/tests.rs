use afflux_frames::Layout;

use super::*;

fn slots() -> Arc<FileSlots> {
    FileSlots::of(&Memory::anonymous(Layout::new(1 << 20, 4).unwrap()).unwrap(), Arc::default())
}

fn key(bytes: &[u8]) -> FileKey {
    FileKey::new(bytes).unwrap()
}

fn live(slots: &FileSlots, slot: u32) -> SlotFile {
    match slots.content(slot) {
        SlotContent::Live(file) => file,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_found_as_it_was_kept() {
    let slots = slots();
    assert_eq!(slots.content(2), SlotContent::Free);
    let longest: Vec<u8> = (1..=64).collect();
    for bytes in [&b""[..], b"a", &longest] {
        let persisted = slots.keep(2, &key(bytes), 4000).unwrap();
        assert_eq!(live(&slots, 2), SlotFile { key: key(bytes), size: 4000, intent: None, is_flushed: true });
        persisted.store_size(5000);
        persisted.begin(&Intent::Size(6));
        let intent = Some(Intent::Size(6));
        assert_eq!(live(&slots, 2), SlotFile { key: key(bytes), size: 5000, intent, is_flushed: true });
        persisted.end();
        persisted.begin(&Intent::Hole(4096..8192));
        assert_eq!(live(&slots, 2).intent, Some(Intent::Hole(4096..8192)));
        persisted.owe_flush();
        assert!(!live(&slots, 2).is_flushed);
        persisted.store_flushed();
        assert!(live(&slots, 2).is_flushed);
        persisted.owe_flush();
        persisted.forget();
        assert_eq!(slots.content(2), SlotContent::Free);
    }
    assert!(FileKey::new(&[0; 65]).is_none());
    assert!(slots.keep(4, &key(b"x"), 0).is_none(), "there are four slots");
}

/// The next file of a slot finds an intent of the last one, and must not take it for its own.
#[test]
fn a_new_file_has_no_intent() {
    let slots = slots();
    let first = slots.keep(0, &key(b"first"), 1).unwrap();
    first.begin(&Intent::Size(0));
    first.forget();
    slots.keep(0, &key(b"second"), 2).unwrap();
    assert_eq!(live(&slots, 0), SlotFile { key: key(b"second"), size: 2, intent: None, is_flushed: true });
}

#[test]
fn a_slot_with_a_flipped_bit_is_no_live_file_with_another_key() {
    let slots = slots();
    slots.keep(1, &key(b"a file of this disk"), 77).unwrap();
    let words = &slots.table[1];
    for bit in (0..at::END * 64).filter(|bit| !(at::SIZE * 64..at::KEY * 64).contains(bit)) {
        let (word, mask) = (bit / 64, 1_u64 << (bit % 64));
        words[word].fetch_xor(mask, Ordering::Relaxed);
        if let SlotContent::Live(file) = slots.content(1) {
            assert_eq!(file.key, key(b"a file of this disk"), "bit {bit}");
        }
        words[word].fetch_xor(mask, Ordering::Relaxed);
    }
    words[at::SIZE].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(slots.content(1), SlotContent::Broken, "no file is so large");
    words[at::SIZE].store(77, Ordering::Relaxed);
    words[at::INTENT].store(3, Ordering::Relaxed);
    assert_eq!(slots.content(1), SlotContent::Broken, "there is no third kind of intent");
}
