use std::fs;
use std::os::unix::fs::PermissionsExt;

use afflux_scratch::Scratch;

use super::*;

#[test]
fn a_changed_byte_a_lost_name_and_another_mode_are_differences() {
    let scratch = Scratch::new(&std::env::temp_dir(), "listing").unwrap();
    let file = scratch.path().join("a");
    fs::write(&file, "bytes").unwrap();
    let before = Listing::of(scratch.path()).unwrap();
    assert_eq!((before.lines(), before.difference(&Listing::of(scratch.path()).unwrap())), (3, None));
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "bytez").unwrap();
    fs::File::open(&file).unwrap().set_modified(time).unwrap();
    let sum = before.difference(&Listing::of(scratch.path()).unwrap()).unwrap();
    assert!(sum.starts_with("before: ") && sum.ends_with("./a"), "{sum}");
    let before = Listing::of(scratch.path()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    let mode = before.difference(&Listing::of(scratch.path()).unwrap()).unwrap();
    assert!(mode.starts_with("before: ./a f "), "{mode}");
    let before = Listing::of(scratch.path()).unwrap();
    fs::remove_file(&file).unwrap();
    let lost = before.difference(&Listing::of(scratch.path()).unwrap()).unwrap();
    assert!(lost.starts_with("before: ./a") || lost.starts_with("before: . d"), "{lost}");
}
