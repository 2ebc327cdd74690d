use std::fs;

use super::*;

#[test]
fn what_was_kept_is_taken_once() {
    let directory = tempfile_directory("once");
    let path = directory.join("verifier");
    assert_eq!(take(&path), None);
    keep(&path, [1, 2, 3, 4, 5, 6, 7, 0xf8]).unwrap();
    assert_eq!(take(&path), Some([1, 2, 3, 4, 5, 6, 7, 0xf8]));
    assert_eq!(take(&path), None);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "nothing stays");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn of_many_who_take_it_at_the_same_moment_one_gets_it() {
    let directory = tempfile_directory("many");
    let path = directory.join("verifier");
    for round in 0..50_u64 {
        keep(&path, round.to_be_bytes()).unwrap();
        // In processes of their own, each would rename the file to a name of its own.
        let got = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&path))).collect();
            takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(got.len() <= 1, "{got:?}");
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn nonsense_is_no_verifier() {
    let directory = tempfile_directory("nonsense");
    let path = directory.join("verifier");
    for text in ["", "12", "+123456789abcdef", "0123456789abcdefg", "0123 56789abcdef"] {
        fs::write(&path, text).unwrap();
        assert_eq!(take(&path), None, "{text:?}");
        assert!(!path.exists());
    }
    fs::remove_dir_all(directory).unwrap();
}

fn tempfile_directory(name: &str) -> std::path::PathBuf {
    afflux_scratch::Scratch::new(&std::env::temp_dir(), name).unwrap().keep()
}
