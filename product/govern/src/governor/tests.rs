use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Read;
use std::thread;

use afflux_budget::RememberedPrices;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::{EventKind, Governor, GovernorEvent, GovernorOptions};
use crate::host::Disk;
use crate::journal::{Journal, JournalError};
use crate::law::Values;
use crate::tests::fake_host::{FakeHost, MB};

const SECOND: u64 = 1_000_000_000;
const BY_OTHERS: Values = Values { strict: true, ratio_ppm: 42 };

fn nothing_known(_: &Disk) -> Option<RememberedPrices> {
    None
}

fn all() -> GovernorOptions {
    GovernorOptions { budget_ns: Some(SECOND), ..GovernorOptions::default() }
}

fn start(tree: &FakeHost, options: GovernorOptions) -> Governor {
    Governor::start(tree.host(), options, &tree.run()).map(|started| started.0).unwrap()
}

fn values(tree: &FakeHost, bdi: &str) -> Values {
    tree.host().values(bdi).unwrap().unwrap()
}

fn has(events: &[GovernorEvent], bdi: &str, is: impl Fn(&EventKind) -> bool) -> bool {
    events.iter().any(|event| event.bdi == bdi && is(&event.what))
}

/// A disk `sdb` that has proven to write this many MB/s.
fn shown(tree: &FakeHost, governor: &mut Governor, mb_per_s: u64) {
    governor.look(&nothing_known).unwrap();
    let at = RefCell::new(0);
    for half_second in 0..20 {
        tree.written("sdb", mb_per_s * half_second / 2, half_second * 500);
        *at.borrow_mut() += SECOND / 2;
        governor.sample(*at.borrow());
    }
    governor.look(&nothing_known).unwrap();
}

#[test]
fn a_disk_is_held_to_its_budget_and_has_its_own_way_again_in_the_end() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    let events = governor.look(&nothing_known).unwrap();
    assert!(
        has(&events, "8:16", |what| matches!(what, EventKind::Limited { bytes_per_second: None, .. })),
        "{events:?}"
    );
    shown(&tree, &mut governor, 25);
    let held = values(&tree, "8:16");
    // 25 MB/s for a second, plus a third, of 4.8 GB.
    assert!(held.strict && held.ratio_ppm.abs_diff(6_944) < 700, "{held:?}");
    assert!(Journal::read(&tree.host(), &tree.run()).unwrap().is_in_force());
    let events = governor.end().unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::PutBack), "{events:?}");
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
    assert!(!Journal::read(&tree.host(), &tree.run()).unwrap().is_in_force());
}

#[test]
fn what_is_fast_enough_is_let_go() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 5000);
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
    assert_eq!(governor.rows()[0].limit_bytes, None);
}

#[test]
fn one_that_is_killed_is_made_up_for_by_the_next() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 25);
    // A dropped governor puts nothing back, like a killed one.
    drop(governor);
    assert!(values(&tree, "8:16").strict);
    let (governor, events, _) = Governor::start(tree.host(), all(), &tree.run()).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::PutBack), "{events:?}");
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
    drop(governor);
}

#[test]
fn what_others_change_is_told_once_and_left_as_it_is() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 25);
    tree.bdi("8:16", BY_OTHERS);
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::Foreign(BY_OTHERS)), "{events:?}");
    assert!(governor.look(&nothing_known).unwrap().is_empty());
    assert!(governor.end().unwrap().is_empty());
    assert_eq!(values(&tree, "8:16"), BY_OTHERS);
}

#[test]
fn only_one_of_the_two_files_changed_by_others_is_theirs_too() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 25);
    let theirs = Values { strict: false, ..values(&tree, "8:16") };
    tree.bdi("8:16", theirs);
    governor.look(&nothing_known).unwrap();
    governor.end().unwrap();
    assert_eq!(values(&tree, "8:16"), theirs);
}

#[test]
fn what_was_set_before_is_governed_by_name_only() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    tree.bdi("8:16", BY_OTHERS);
    let mut governor = start(&tree, all());
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::Foreign(BY_OTHERS)), "{events:?}");
    governor.end().unwrap();
    let named = GovernorOptions { devices: vec![("sdb".to_owned(), Some(SECOND))], ..GovernorOptions::default() };
    let mut governor = start(&tree, named);
    governor.look(&nothing_known).unwrap();
    assert_ne!(values(&tree, "8:16"), BY_OTHERS);
    governor.end().unwrap();
    assert_eq!(values(&tree, "8:16"), BY_OTHERS);
}

#[test]
fn devices_come_go_and_come_again_as_others() {
    let tree = FakeHost::new();
    let mut governor = start(&tree, all());
    assert!(governor.look(&nothing_known).unwrap().is_empty());
    tree.disk("sdb", "8:16", 1);
    shown(&tree, &mut governor, 5);
    let held = values(&tree, "8:16");
    assert!(held.strict);
    tree.unplug("sdb", "8:16");
    governor.sample(99 * SECOND);
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::Gone), "{events:?}");
    // Another device gets the same name between two looks. The first device's speed does not apply.
    tree.disk("sdb", "8:16", 2);
    governor.look(&nothing_known).unwrap();
    assert!(values(&tree, "8:16").ratio_ppm > 4 * held.ratio_ppm);
    tree.disk("sdb", "8:16", 3);
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::Gone), "{events:?}");
    assert!(!has(&events, "8:16", |what| matches!(what, EventKind::Foreign(_))), "{events:?}");
    assert!(values(&tree, "8:16").strict, "met and held in the same look");
}

#[test]
fn a_medium_that_is_put_in_is_noticed() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    tree.write("sys/devices/sdb/size", "0\n");
    let mut governor = start(&tree, all());
    assert!(governor.look(&nothing_known).unwrap().is_empty(), "an empty drive is not reported");
    tree.write("sys/devices/sdb/size", "2000\n");
    tree.write("sys/devices/sdb/diskseq", "2\n");
    governor.look(&nothing_known).unwrap();
    assert!(values(&tree, "8:16").strict);
    governor.end().unwrap();
}

#[test]
fn a_device_that_goes_between_two_reads_is_nobodys_trouble() {
    let tree = FakeHost::new();
    for (name, number) in [("sdb", "8:16"), ("sdc", "8:32")] {
        tree.disk(name, number, 1);
    }
    let mut governor = start(&tree, all());
    governor.look(&nothing_known).unwrap();
    // The bdi is still listed, but its files are gone.
    for file in ["strict_limit", "max_ratio_fine", "max_ratio"] {
        fs::remove_file(tree.path().join("sys/class/bdi/8:16").join(file)).unwrap();
    }
    tree.write("proc/vmstat", "nr_dirty_threshold 500000\nnr_dirty_background_threshold 250000\n");
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:32", |what| matches!(what, EventKind::Limited { .. })), "{events:?}");
    assert!(events.iter().all(|event| event.bdi == "8:32"), "{events:?}");
    governor.end().unwrap();
}

/// The files of a device; they come and go in any order.
const FILES: [&str; 8] = [
    "sys/class/bdi/NUMBER/strict_limit",
    "sys/class/bdi/NUMBER/max_ratio_fine",
    "sys/class/bdi/NUMBER/max_ratio",
    "sys/devices/NAME/stat",
    "sys/devices/NAME/diskseq",
    "sys/devices/NAME/size",
    "sys/dev/block/NUMBER",
    "sys/class/block/NAME",
];

#[test]
fn whatever_of_a_device_is_gone_already_the_others_are_held_and_put_back() {
    // A disk for each set of missing files: once for new devices, once for devices that are already held.
    let sets = 1_u32..1 << FILES.len();
    let disk = |set: u32| (format!("sd{set}"), format!("8:{set}"));
    for is_held in [false, true] {
        let tree = FakeHost::new();
        tree.disk("sd0", "8:0", 1);
        sets.clone().for_each(|set| tree.disk(&disk(set).0, &disk(set).1, 1));
        let go = || {
            for set in sets.clone() {
                let (name, number) = disk(set);
                for (_, file) in FILES.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0) {
                    let file = file.replace("NAME", &name).replace("NUMBER", &number);
                    fs::remove_file(tree.path().join(file)).unwrap();
                }
            }
        };
        if !is_held {
            go();
        }
        let mut governor = start(&tree, all());
        let look = |governor: &mut Governor, at| {
            governor.sample(at * SECOND);
            let events = governor.look(&nothing_known).unwrap();
            let is_told = |event: &&GovernorEvent| {
                matches!(event.what, EventKind::Refused(_) | EventKind::Alone(_) | EventKind::Foreign(_))
            };
            assert_eq!(events.iter().find(is_told), None);
        };
        look(&mut governor, 1);
        if is_held {
            assert!(sets.clone().all(|set| values(&tree, &disk(set).1).strict));
            go();
            tree.write("proc/vmstat", "nr_dirty_threshold 500000\nnr_dirty_background_threshold 250000\n");
        }
        look(&mut governor, 2);
        look(&mut governor, 3);
        let held = values(&tree, "8:0");
        assert!(held.strict);
        assert_eq!(Journal::read(&tree.host(), &tree.run()).unwrap().devices["8:0"].ours_ppm, [held.ratio_ppm]);
        // All of them come back, and are held.
        for set in sets.clone() {
            let (name, number) = disk(set);
            tree.unplug(&name, &number);
            tree.disk(&name, &number, 2);
        }
        look(&mut governor, 4);
        look(&mut governor, 5);
        assert_eq!(
            sets.clone().find(|set| !values(&tree, &disk(*set).1).strict),
            None,
            "it is all there, and not held"
        );
        governor.end().unwrap();
        assert!((0..sets.end).all(|set| values(&tree, &disk(set).1) == Values::KERNELS));
        assert!(!Journal::read(&tree.host(), &tree.run()).unwrap().is_in_force());
    }
}

#[test]
fn a_device_that_goes_between_being_read_and_being_written_is_nobodys_trouble() {
    let tree = FakeHost::new();
    // With so many devices the journal fills a pipe: the governor blocks between its reads and its writes until the
    // test empties the pipe.
    let numbers: Vec<String> = (0..400).map(|minor| format!("259:{minor}")).collect();
    for (at, number) in numbers.iter().enumerate() {
        tree.disk(&format!("sd{at}"), number, 1);
    }
    let mut governor = start(&tree, all());
    let (pipe, bdis) = (tree.run().join("govern.json.new"), tree.path().join("sys/class/bdi"));
    // Not by a program: until it begins, a child has the lock of each governor of this process.
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let going = thread::spawn(move || {
        let mut pipe = File::open(pipe).unwrap();
        for (number, what) in [("259:0", ""), ("259:7", "strict_limit"), ("259:8", "max_ratio_fine")] {
            let path = bdis.join(number).join(what);
            if what.is_empty() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text.len()
    });
    let events = governor.look(&nothing_known).unwrap();
    assert!(going.join().unwrap() > 1 << 16, "it would not have waited");
    assert_eq!(events.iter().find(|event| !matches!(event.what, EventKind::Limited { .. })), None);
    for number in numbers.iter().filter(|number| !["259:0", "259:7", "259:8"].contains(&number.as_str())) {
        assert!(values(&tree, number).strict, "{number}");
    }
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "259:0", |what| *what == EventKind::Gone), "{events:?}");
    assert!(!Journal::read(&tree.host(), &tree.run()).unwrap().devices.contains_key("259:0"));
    governor.end().unwrap();
    assert_eq!(values(&tree, "259:399"), Values::KERNELS);
}

#[test]
fn a_drive_whose_medium_goes_is_no_longer_held_and_the_next_medium_is_new() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 5);
    let held = values(&tree, "8:16");
    assert!(held.strict);
    tree.medium("sdb", 2, 0);
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::PutBack), "{events:?}");
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
    assert!(!Journal::read(&tree.host(), &tree.run()).unwrap().is_in_force());
    tree.medium("sdb", 3, 4000);
    let events = governor.look(&nothing_known).unwrap();
    assert!(
        has(&events, "8:16", |what| matches!(what, EventKind::Limited { bytes_per_second: None, .. })),
        "{events:?}"
    );
    // The media are exchanged between two looks; values that another program has set stay.
    tree.medium("sdb", 4, 4000);
    let events = governor.look(&nothing_known).unwrap();
    assert!(!has(&events, "8:16", |what| matches!(what, EventKind::Foreign(_))), "{events:?}");
    assert!(values(&tree, "8:16").ratio_ppm > 4 * held.ratio_ppm);
    tree.bdi("8:16", BY_OTHERS);
    tree.medium("sdb", 5, 0);
    governor.look(&nothing_known).unwrap();
    assert_eq!(values(&tree, "8:16"), BY_OTHERS);
    governor.end().unwrap();
    assert_eq!(values(&tree, "8:16"), BY_OTHERS);
}

#[test]
fn a_medium_that_goes_while_no_governor_runs_is_made_up_for_by_the_next() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    shown(&tree, &mut governor, 5);
    drop(governor);
    tree.medium("sdb", 2, 4000);
    let (_governor, events, _) = Governor::start(tree.host(), all(), &tree.run()).unwrap();
    assert!(has(&events, "8:16", |what| *what == EventKind::PutBack), "{events:?}");
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
}

#[test]
fn nonsense_in_a_devices_files_is_that_devices_trouble_alone() {
    let tree = FakeHost::new();
    for (name, number) in [("sdb", "8:16"), ("sdc", "8:32")] {
        tree.disk(name, number, 1);
    }
    tree.write("sys/class/bdi/8:16/max_ratio_fine", "nonsense");
    tree.write("sys/devices/sdc/stat", "what is this");
    tree.bdi("no:such", Values::KERNELS);
    let mut options = all();
    options.dry_run = false;
    let (host, run) = (tree.host(), tree.run());
    let error = Governor::start(host, options, &run).err();
    assert!(error.is_none(), "{error:?}");
    let mut governor = start(&tree, all());
    let events = governor.look(&nothing_known).unwrap();
    governor.sample(SECOND);
    assert!(
        has(&events, "8:16", |what| matches!(what, EventKind::Alone(why) if why.contains("no sense"))),
        "{events:?}"
    );
    assert!(has(&events, "8:32", |what| matches!(what, EventKind::Limited { .. })), "{events:?}");
    assert!(governor.look(&nothing_known).unwrap().is_empty(), "it is reported once");
    governor.end().unwrap();
}

#[test]
fn a_dry_run_changes_nothing_and_needs_no_lock() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let first = start(&tree, all());
    let mut dry = start(&tree, GovernorOptions { dry_run: true, ..all() });
    let events = dry.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| matches!(what, EventKind::Limited { .. })), "{events:?}");
    assert!(dry.look(&nothing_known).unwrap().is_empty());
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
    drop(first);
}

#[test]
fn a_second_governor_changes_nothing() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut first = start(&tree, all());
    first.look(&nothing_known).unwrap();
    let held = values(&tree, "8:16");
    let second = Governor::start(tree.host(), all(), &tree.run());
    assert!(matches!(second, Err(JournalError::Taken { .. })));
    assert_eq!(values(&tree, "8:16"), held);
}

#[test]
fn a_journal_that_makes_no_sense_is_put_aside_and_told() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    tree.write("run/govern.json", "{{{{");
    let (_governor, _, warning) = Governor::start(tree.host(), all(), &tree.run()).unwrap();
    assert!(warning.is_some_and(|text| text.contains("govern.json")));
    assert!(tree.run().join("govern.json.bad").exists());
}

#[test]
fn what_is_known_of_a_device_is_in_force_at_once() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let kept =
        RememberedPrices { write_run_ns: 1000, write_mib_ns: 200_000_000, read_run_ns: 1000, read_mib_ns: 1_000_000 };
    let known = |disk: &Disk| (disk.name == "sdb").then_some(kept);
    let mut governor = start(&tree, GovernorOptions { known_only: true, ..all() });
    tree.disk("sdc", "8:32", 2);
    let events = governor.look(&known).unwrap();
    let of_sdb =
        |what: &EventKind| matches!(what, EventKind::Limited { bytes_per_second: Some(speed), .. } if speed / MB == 5);
    assert!(has(&events, "8:16", of_sdb), "{events:?}");
    assert_eq!(values(&tree, "8:32"), Values::KERNELS, "for one look only, what is not known is left alone");
    governor.end().unwrap();
}

#[test]
fn a_device_named_off_is_left_alone_and_a_part_names_its_disk() {
    let tree = FakeHost::new();
    for (name, number) in [("sdb", "8:16"), ("sdc", "8:32")] {
        tree.disk(name, number, 1);
    }
    tree.partition("sdb", "sdb1", "8:17");
    let mut governor = start(&tree, GovernorOptions { devices: vec![("sdb1".to_owned(), None)], ..all() });
    let events = governor.look(&nothing_known).unwrap();
    assert!(has(&events, "8:16", |what| matches!(what, EventKind::Alone(_))), "{events:?}");
    assert_eq!((values(&tree, "8:16"), values(&tree, "8:32").strict), (Values::KERNELS, true));
    governor.end().unwrap();
}

#[test]
fn nothing_is_changed_that_could_not_be_written_down_before() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 1);
    let mut governor = start(&tree, all());
    // This directory has the name of the new journal's file, so that the journal cannot be replaced.
    fs::create_dir_all(tree.run().join("govern.json.new")).unwrap();
    assert!(governor.look(&nothing_known).is_err());
    assert_eq!(values(&tree, "8:16"), Values::KERNELS);
}
