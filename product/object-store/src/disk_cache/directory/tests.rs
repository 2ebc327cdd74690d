use afflux_scratch::Scratch;

use super::*;

const BYTES: u64 = 64 << 20;

fn scratch() -> Scratch {
    Scratch::new(&std::env::temp_dir(), "disk-cache").unwrap()
}

#[test]
fn a_directory_has_one_disk_cache() {
    let scratch = scratch();
    let first = CacheDirectory::take(scratch.path(), BYTES).unwrap();
    let second = CacheDirectory::take(scratch.path(), BYTES).unwrap_err();
    assert_eq!(second, DiskCacheError::InUse { directory: scratch.path().display().to_string() });
    drop(first);
    assert!(CacheDirectory::take(scratch.path(), BYTES).is_ok());
}

#[test]
fn all_space_is_reserved_and_a_file_with_a_part_is_not_free() {
    let scratch = scratch();
    let taken = CacheDirectory::take(scratch.path(), BYTES).unwrap();
    assert_eq!((taken.files, taken.file_bytes, taken.free_bytes), (64, 1 << 20, BYTES));
    let file = taken.parts().join(format!("{FILE}00000003"));
    drop(taken);
    open(&file).unwrap().write_all_at(b"index", 100).unwrap();
    assert_eq!(CacheDirectory::take(scratch.path(), BYTES).unwrap().free_bytes, BYTES - (1 << 20));
}

#[test]
fn another_size_begins_anew_and_leaves_the_files_of_others_alone() {
    let scratch = scratch();
    let taken = CacheDirectory::take(scratch.path(), BYTES).unwrap();
    let (file, other) = (taken.parts().join(format!("{FILE}00000003")), taken.parts().join("mine"));
    drop(taken);
    open(&file).unwrap().write_all_at(b"index", 100).unwrap();
    open(&other).unwrap();
    assert_eq!(CacheDirectory::take(scratch.path(), 2 * BYTES).unwrap().free_bytes, 2 * BYTES);
    assert!(other.exists());
    File::options().write(true).open(&file).unwrap().set_len(5).unwrap();
    let repaired = CacheDirectory::take(scratch.path(), 2 * BYTES).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), repaired.file_bytes);
}

#[test]
fn a_volume_that_was_put_back_from_a_copy_gets_a_new_name() {
    let scratch = scratch();
    let taken = CacheDirectory::take(scratch.path(), BYTES).unwrap();
    let name = |volume, epoch, fresh| taken.name_of(volume, epoch, fresh).unwrap();
    let first = name("a", Some(5), 1);
    assert_eq!(name("a", Some(6), 2), first);
    assert_eq!(name("a", None, 3), first, "a reader makes no segments");
    assert_ne!(name("b", Some(1), 4), first);
    let second = name("a", Some(6), 5);
    assert_ne!(second, first, "a writer of this epoch was here");
    assert_eq!(name("a", Some(7), 6), second);
}

#[test]
fn a_damaged_list_of_volumes_gives_new_names_and_stays_bounded() {
    let scratch = scratch();
    let taken = CacheDirectory::take(scratch.path(), BYTES).unwrap();
    let first = taken.name_of("a", Some(1), 1).unwrap();
    fs::write(scratch.path().join(VOLUMES), "a x\nb\n\0\n").unwrap();
    assert_ne!(taken.name_of("a", Some(2), 2).unwrap(), first);
    for number in 0..VOLUMES_MAX as u64 + 100 {
        taken.name_of(&format!("volume-{number}"), Some(1), number).unwrap();
    }
    let lines = fs::read_to_string(scratch.path().join(VOLUMES)).unwrap().lines().count();
    assert_eq!(lines, VOLUMES_MAX);
}
