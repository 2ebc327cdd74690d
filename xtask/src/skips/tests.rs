use super::ability::{Ability, of_this_machine};
use super::{EXCUSED, end, excuse, listed, not_excused};

const LIST: &str = "a\tt\tfio is not installed\na\tt\tfio is not installed\nb\tu\tfio is not installed\n\
                    a\tv\troot reads every directory\n";

#[test]
fn each_reason_is_said_once_with_its_tests_and_its_excuse() {
    assert_eq!(listed("", &|_| false), "");
    let expected = "Skipped: fio is not installed\n  a: t\n  b: u\n\
                    Skipped: root reads every directory (excused: the other tests need root)\n  a: v\n";
    assert_eq!(listed(LIST, &|_| false), expected);
}

#[test]
fn a_gate_fails_for_a_skipped_test_unless_its_reason_is_excused() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "skips").unwrap();
    let outcome = |lines: &str, is_gate| {
        let file = scratch.path().join("list");
        std::fs::write(&file, lines).unwrap();
        end(&file, is_gate).is_ok()
    };
    let excused = "a\tv\troot reads every directory\n";
    assert!(outcome("", true) && outcome(excused, true) && outcome(LIST, false));
    assert!(!outcome(LIST, true));
    assert!(!outcome("half a line", true));
    assert!(end(&scratch.path().join("none"), true).is_ok());
    assert_eq!(not_excused(LIST, &|_| false), 3);
}

#[test]
fn a_machine_that_has_the_ability_has_no_excuse() {
    let reasons = [
        ("no btrfs can be mounted here (not root, or no mkfs)", Ability::Mounts),
        ("losetup -f --show /x: Permission denied", Ability::Mounts),
        ("only root can act as others", Ability::Root),
        ("the kernel has no throttle of control groups, version 1", Ability::Throttle),
        ("no control groups that bound memory", Ability::MemoryGroups),
        ("no limit can be set on xfs: a package or a part of this kernel is missing", Ability::Quotas),
        ("uquota is no option of xfs here", Ability::Quotas),
        ("mkfs.ext4: mount: wrong fs type, bad option", Ability::FoldedNames),
    ];
    for (reason, needs) in reasons {
        assert!(excuse(reason, &|_| false).is_some(), "{reason}");
        assert!(excuse(reason, &|ability| ability == needs).is_none(), "{reason}");
    }
    assert!(excuse("fio is not installed", &|_| false).is_none());
}

/// Every machine that runs the gate as root has these.
#[test]
fn a_gate_without_fuse_or_io_uring_fails() {
    let is_root = |ability| ability == Ability::Root;
    for reason in ["/dev/fuse: No such file or directory (os error 2)", "/dev/fuse is not there"] {
        assert!(excuse(reason, &is_root).is_none() && excuse(reason, &|_| false).is_some(), "{reason}");
    }
    for reason in ["no io_uring here; worker threads go on by themselves", "moto_server is not on the path"] {
        assert!(excuse(reason, &|_| false).is_none(), "{reason}");
    }
}

#[test]
fn each_probe_answers_twice_the_same() {
    let has = of_this_machine();
    let abilities: Vec<Ability> = EXCUSED.iter().map(|row| row.needs).collect();
    for ability in abilities {
        assert_eq!(has(ability), of_this_machine()(ability), "{ability:?}");
    }
    assert_ne!(has(Ability::Root), has(Ability::OrdinaryUser));
}
