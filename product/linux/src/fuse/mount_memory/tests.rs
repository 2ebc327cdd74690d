use super::*;

fn place() -> MountPlace {
    MountPlace { point: PathBuf::from("/srv/a point"), number: 77, file_system: 57 }
}

#[test]
fn a_place_is_found_by_the_next_server() {
    let memory = MountMemory::made(100).unwrap();
    assert_eq!(memory.place(), None, "nobody has written it");
    assert!(memory.note_place(&place()));
    (*memory.words()).as_ref()[99].store(5, Ordering::Relaxed);
    let left = MountMemory::left(memory.file.try_clone().unwrap()).unwrap();
    assert_eq!(left.place(), Some(place()));
    assert_eq!((*left.words()).as_ref()[99].load(Ordering::Relaxed), 5);
}

#[test]
fn a_damaged_place_is_none() {
    let memory = MountMemory::made(1).unwrap();
    memory.note_place(&place());
    for at in 0..=CHECK_AT {
        let word = &memory.all()[at];
        let before = word.fetch_xor(1 << (at % 64), Ordering::Relaxed);
        assert_eq!(memory.place(), None, "word {at}");
        word.store(before, Ordering::Relaxed);
    }
    assert_eq!(memory.place(), Some(place()));
    let long = MountPlace { point: PathBuf::from("/x".repeat(PATH_BYTES_MAX)), ..place() };
    assert!(!memory.note_place(&long));
}

#[test]
fn other_files_are_refused() {
    let null = std::fs::File::open("/dev/null").unwrap();
    assert!(MountMemory::left(null.into()).is_err());
    let short = memory_file::made("short", 4096, Room::AsUsed).unwrap();
    assert!(MountMemory::left(short).is_err());
}
