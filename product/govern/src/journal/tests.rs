use std::collections::BTreeMap;
use std::fs;

use super::{Journal, JournalError, LOCK, Locked, NAME, restore};
use crate::law::Values;
use crate::tests::fake_host::FakeHost;

const OURS: Values = Values { strict: true, ratio_ppm: 5_000 };

fn journal(ours: &str, sequence: u64) -> String {
    format!(
        r#"{{"version":1,"boot_id":"one","pid":1,"devices":{{"8:16":{{"name":"sdb","number":"8:16","sequence":{sequence},
        "original":{{"strict":false,"ratio_ppm":1000000}},"ours_ppm":{ours},"foreign":null,"budget_ns":1,
        "bytes_per_second":null,"limit_bytes":null}}}}}}"#
    )
}

fn values(tree: &FakeHost) -> Values {
    tree.host().values("8:16").unwrap().unwrap()
}

#[test]
fn what_one_that_died_has_set_is_put_back_and_what_others_set_is_not() {
    let theirs = Values { strict: true, ratio_ppm: 9_000 };
    for (ours, sequence, found, after) in [
        ("[5000]", 4, OURS, Values::KERNELS),
        // The governor died between the two files, or between two limits.
        ("[1000,5000]", 4, Values { strict: false, ratio_ppm: 5_000 }, Values::KERNELS),
        ("[5000]", 4, theirs, theirs),
        ("[]", 4, theirs, theirs),
        ("[5000]", 4, Values::KERNELS, Values::KERNELS),
        // Another device under the same number.
        ("[5000]", 3, OURS, OURS),
    ] {
        let tree = FakeHost::new();
        tree.disk("sdb", "8:16", 4);
        tree.bdi("8:16", found);
        tree.write("run/govern.json", &journal(ours, sequence));
        let restored = restore(&tree.host(), &tree.run()).unwrap();
        assert_eq!(values(&tree), after, "{ours} {found:?}");
        assert_eq!(restored.iter().any(|it| it.foreign.is_some()), found == theirs && ours != "[]", "{restored:?}");
        assert!(restore(&tree.host(), &tree.run()).unwrap().is_empty(), "once");
    }
}

#[test]
fn one_that_cannot_be_put_back_keeps_no_other_from_it_and_stays_written_down() {
    let tree = FakeHost::new();
    for (name, number) in [("sdb", "8:16"), ("sdc", "8:32")] {
        tree.disk(name, number, 4);
        tree.bdi(number, OURS);
    }
    let mut journal: serde_json::Value = serde_json::from_str(&journal("[5000]", 4)).unwrap();
    let mut second = journal["devices"]["8:16"].clone();
    second["number"] = "8:32".into();
    journal["devices"]["8:32"] = second;
    tree.write("run/govern.json", &journal.to_string());
    tree.write("sys/class/bdi/8:16/max_ratio_fine", "nonsense");
    assert!(restore(&tree.host(), &tree.run()).unwrap_err().to_string().contains("max_ratio_fine"));
    assert_eq!(tree.host().values("8:32").unwrap(), Some(Values::KERNELS));
    tree.bdi("8:16", OURS);
    assert_eq!(restore(&tree.host(), &tree.run()).unwrap().len(), 1);
    assert_eq!(values(&tree), Values::KERNELS);
}

#[test]
fn what_stood_before_a_reboot_is_nothing() {
    let tree = FakeHost::new();
    tree.disk("sdb", "8:16", 4);
    tree.bdi("8:16", OURS);
    tree.write("run/govern.json", &journal("[5000]", 4));
    tree.write("proc/sys/kernel/random/boot_id", "two\n");
    assert!(restore(&tree.host(), &tree.run()).unwrap().is_empty());
    assert_eq!(values(&tree), OURS);
}

#[test]
fn a_second_governor_is_refused_and_told_which_runs() {
    let tree = FakeHost::new();
    let first = Locked::new(&tree.run()).unwrap();
    let error = Locked::new(&tree.run()).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(matches!(restore(&tree.host(), &tree.run()), Err(JournalError::Taken { .. })));
    // A child that has not begun its program yet has the file, too.
    let child = first.lock.try_clone().unwrap();
    drop(first);
    assert!(Locked::new(&tree.run()).is_ok());
    drop(child);
}

#[test]
fn a_file_that_makes_no_sense_is_told_with_what_to_do() {
    let tree = FakeHost::new();
    for text in
        ["", "{", "[]", r#"{"version":9,"boot_id":"one","pid":1,"devices":{}}"#, "\u{0}\u{0}", &"x".repeat(2 << 20)]
    {
        tree.write("run/govern.json", text);
        let error = Journal::read(&tree.host(), &tree.run()).unwrap_err();
        assert!(error.to_string().contains("strict_limit"), "{error}");
    }
    fs::write(tree.run().join("govern.json"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(matches!(Journal::read(&tree.host(), &tree.run()), Err(JournalError::Nonsense { .. })));
    fs::remove_file(tree.run().join("govern.json")).unwrap();
    assert!(!Journal::read(&tree.host(), &tree.run()).unwrap().is_in_force());
}

#[test]
fn no_link_in_the_place_of_a_file_is_followed() {
    let tree = FakeHost::new();
    let (host, run) = (tree.host(), tree.run());
    fs::create_dir_all(&run).unwrap();
    let victim = tree.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&victim, run.join(name)).unwrap();
    link(LOCK);
    assert!(Locked::new(&run).is_err(), "the lock is a link");
    fs::remove_file(run.join(LOCK)).unwrap();
    let locked = Locked::new(&run).unwrap();
    link("govern.json.new");
    locked.write(&host, BTreeMap::new()).unwrap();
    assert!(Journal::read(&host, &run).is_ok());
    fs::remove_file(run.join(NAME)).unwrap();
    link(NAME);
    assert!(Journal::read(&host, &run).is_err(), "the journal is a link");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}
