use super::*;

fn location() -> MountLocation {
    MountLocation { point: PathBuf::from("/srv/a point"), mount_id: 77, file_system: 57 }
}

#[test]
fn a_place_is_found_by_the_next_server() {
    let memory = MountMemory::made(100).unwrap();
    assert_eq!(memory.location(), None, "nobody has written it");
    assert!(memory.try_note_location(&location()));
    (*memory.words()).as_ref()[99].store(5, Ordering::Relaxed);
    let inherited = MountMemory::inherited(memory.file.try_clone().unwrap()).unwrap();
    assert_eq!(inherited.location(), Some(location()));
    assert_eq!((*inherited.words()).as_ref()[99].load(Ordering::Relaxed), 5);
}

/// A change here is one of the form of a mount's memory, of which the location is the first part.
// rule: the form of a mount's stored location changes with its number alone
// kept in: `product/linux-server/src/fuse/mount_memory.rs`
#[test]
fn a_location_of_this_form_is_found() {
    let memory = MountMemory::made(1).unwrap();
    let sample = [
        (0, 0x4543_414c_5058_4641),
        (1, 77),
        (2, 57),
        (3, 12),
        (8, 0x7020_612f_7672_732f),
        (9, 0x746e_696f),
        (520, 0xc3da_52c0_090b_34f1),
    ];
    sample.into_iter().for_each(|(at, word): (usize, u64)| memory.all()[at].store(word, Ordering::Relaxed));
    assert_eq!(memory.location(), Some(location()));
}

#[test]
fn a_damaged_place_is_none() {
    let memory = MountMemory::made(1).unwrap();
    memory.try_note_location(&location());
    for at in 0..=CHECK_AT {
        let word = &memory.all()[at];
        let before = word.fetch_xor(1 << (at % 64), Ordering::Relaxed);
        assert_eq!(memory.location(), None, "word {at}");
        word.store(before, Ordering::Relaxed);
    }
    assert_eq!(memory.location(), Some(location()));
    let long = MountLocation { point: PathBuf::from("/x".repeat(PATH_BYTES_MAX)), ..location() };
    assert!(!memory.try_note_location(&long));
}

#[test]
fn other_files_are_refused() {
    let null = std::fs::File::open("/dev/null").unwrap();
    assert!(MountMemory::inherited(null.into()).is_err());
    let short = backing_file::made("short", 4096, MemoryReservation::AsUsed).unwrap();
    assert!(MountMemory::inherited(short).is_err());
}
