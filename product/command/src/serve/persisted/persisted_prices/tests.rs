use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use afflux_engine::policy::Remembered;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{DISKS_MAX, Learned, PersistedPrices};

/// The path of a file that does not exist.
fn place(name: &str) -> PathBuf {
    afflux_scratch::Scratch::new(&std::env::temp_dir(), name).unwrap().keep().join("disks.json")
}

fn prices(mib_ns: u64) -> Remembered {
    let names = ["write_run_ns", "write_mib_ns", "read_run_ns", "read_mib_ns"];
    names.map(str::to_owned).into_iter().zip([20_000, mib_ns, 30_000, 40_000]).collect()
}

fn learned(identity: &str, mib_ns: u64) -> Learned {
    Learned { identity: identity.to_owned(), name: "sda1".to_owned(), prices: prices(mib_ns) }
}

fn read(path: &Path) -> (PersistedPrices, Vec<String>) {
    PersistedPrices::read(Some(path.to_path_buf()))
}

#[test]
fn what_is_kept_is_there_at_the_next_start_beside_what_others_kept() {
    let path = place("there");
    let (persisted, warnings) = read(&path);
    assert!(warnings.is_empty() && persisted.of("a").is_empty(), "{warnings:?}");
    let (other, _) = read(&path);
    persisted.keep(vec![learned("a", 50_000), Learned { prices: Remembered::new(), ..learned("cold", 1) }]).unwrap();
    other.keep(vec![learned("b", 60_000)]).unwrap();
    let (persisted, warnings) = read(&path);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(
        (persisted.of("a"), persisted.of("b"), persisted.of("cold")),
        (prices(50_000), prices(60_000), Remembered::new())
    );
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["disks.json"], "nothing else is left");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn prices_are_known_while_the_file_s_disk_keeps_a_save_waiting() {
    let path = place("waits");
    let (persisted, _) = read(&path);
    persisted.keep(vec![learned("a", 50_000)]).unwrap();
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // A pipe's reader waits as that of a file on a hung disk does.
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    thread::scope(|scope| {
        let saving = scope.spawn(|| persisted.keep(vec![learned("b", 60_000)]));
        let mut pipe = OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!((persisted.of("a"), persisted.of("b")), (prices(50_000), Remembered::new()));
        pipe.write_all(&text).unwrap();
        drop(pipe);
        saving.join().unwrap().unwrap();
    });
    assert_eq!((persisted.of("a"), persisted.of("b")), (prices(50_000), prices(60_000)));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let path = place("same");
    read(&path).0.keep(vec![learned("a", 50_000)]).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    read(&path).0.keep(vec![learned("a", 50_000)]).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn nonsense_is_refused_with_the_reason_and_replaced() {
    let disk = |prices: &str| {
        format!(r#"{{"version":1,"disks":{{"x":{{"name":"sda1","served_unix_s":1,"prices":{prices}}}}}}}"#)
    };
    let good = r#"{"write_run_ns":20000,"write_mib_ns":50000,"read_run_ns":1,"read_mib_ns":40000}"#;
    for (text, why) in [
        ("".to_owned(), "EOF while parsing"),
        ("\u{0}\u{1}".to_owned(), "expected value at line 1"),
        ("[]".to_owned(), "is not used (invalid length 0, expected struct Document"),
        (r#"{"version":1}"#.to_owned(), "missing field `disks`"),
        (r#"{"disks":{}}"#.to_owned(), "missing field `version`"),
        (disk(r#"{"write_run_ns":-1}"#), "invalid value: integer `-1`"),
        (disk(r#"{"write_run_ns":20000}"#), "its entry for sda1 (x) is not used: write_mib_ns is missing"),
        (disk(good), "read_run_ns is 1, and prices go from 1000 to 10000000000"),
        (" ".repeat(2 << 20), "it is larger than 1.00 MiB"),
    ] {
        let path = place("nonsense");
        fs::write(&path, &text).unwrap();
        let (persisted, warnings) = read(&path);
        let [said] = &warnings[..] else { panic!("{text:.80}: {warnings:?}") };
        assert!(said.contains(why) && said.contains("disks.json"), "{said}");
        assert!(persisted.of("x").is_empty());
        persisted.keep(vec![learned("y", 50_000)]).unwrap();
        assert!(read(&path).1.is_empty(), "it is written anew");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

#[test]
fn a_newer_form_is_left_alone() {
    let path = place("newer");
    let text = r#"{"version":2,"disks":[]}"#;
    fs::write(&path, text).unwrap();
    let (persisted, warnings) = read(&path);
    assert!(warnings[0].contains("has version 2, and this program knows 1"), "{warnings:?}");
    persisted.keep(vec![learned("a", 50_000)]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn of_many_disks_those_served_last_are_kept() {
    let path = place("many");
    let disk = |number: u64| {
        format!(
            r#""d{number}":{{"name":"x","served_unix_s":{number},"prices":{}}}"#,
            serde_json::to_string(&prices(50_000)).unwrap()
        )
    };
    let disks: Vec<String> = (0..DISKS_MAX as u64).map(disk).collect();
    fs::write(&path, format!(r#"{{"version":1,"disks":{{{}}}}}"#, disks.join(","))).unwrap();
    read(&path).0.keep(vec![learned("new", 70_000)]).unwrap();
    let (persisted, _) = read(&path);
    assert_eq!(
        (persisted.of("d0"), persisted.of("d1"), persisted.of("new")),
        (Remembered::new(), prices(50_000), prices(70_000))
    );
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_and_leaves_what_was() {
    let path = place("unwritable");
    read(&path).0.keep(vec![learned("a", 50_000)]).unwrap();
    let (persisted, _) = PersistedPrices::read(Some(path.join("below-a-file.json")));
    assert!(persisted.keep(vec![learned("b", 50_000)]).is_err());
    assert_eq!(read(&path).0.of("a"), prices(50_000));
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
