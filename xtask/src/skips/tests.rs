use super::{
    EXCUSES, FOLDING, MEMORY_GROUPS, MOUNTS, QUOTAS, ROOT, THROTTLE, count, end, is_root, listed, missing, not_excused,
    reasons, without_positions,
};

const LIST: &str = "a\tt\tfio is not installed (Debian package fio)\na\tt\tfio is not installed (Debian package fio)\n\
                    b\tu\tfio is not installed (Debian package fio)\n\
                    a\tv\troot reads every directory\n";

#[test]
fn what_is_missing_is_said_once_with_its_reasons_their_tests_and_their_excuses() {
    assert_eq!(listed("", &reasons("", |_| false), true), "");
    let expected = "Skipped for want of an ability of this machine: 1 tests\n  root reads every directory (excused: the other \
                    tests need root): 1\n    a: v\nSkipped for want of the Debian package fio: 2 tests\n  fio is not \
                    installed (Debian package fio): 2\n    a: t\n    b: u\n";
    assert_eq!(listed(LIST, &reasons(LIST, |_| false), true), expected);
    let short: String =
        expected.lines().filter(|line| !line.starts_with("    ")).map(|line| format!("{line}\n")).collect();
    assert_eq!(listed(LIST, &reasons(LIST, |_| false), false), short);
}

#[test]
fn a_reason_is_of_one_kind_and_has_no_place_of_one_run() {
    assert_eq!(missing("mkfs.xfs is not installed (Debian package xfsprogs)"), "the Debian package xfsprogs");
    assert_eq!(missing("only root can give a file away") == "root", !is_root());
    assert_eq!(missing("no io_uring here"), "an ability of this machine");
    let reason = "mount [\"--bind\", \"/tmp/afflux-e2e-04794cba/a\"]: must be superuser to use mount.";
    assert_eq!(without_positions(reason), "mount [\"--bind\", … must be superuser to use mount.");
}

#[test]
fn a_test_with_several_skips_is_counted_once() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "skips").unwrap();
    let file = scratch.path().join("list");
    std::fs::write(&file, LIST).unwrap();
    assert_eq!(count(&file), 3);
    assert_eq!(count(&scratch.path().join("none")), 0);
}

#[test]
fn a_gate_fails_for_a_skipped_test_unless_its_reason_is_excused() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "skips").unwrap();
    let outcome = |lines: &str, is_gate| {
        let file = scratch.path().join("list");
        std::fs::write(&file, lines).unwrap();
        end(&file, is_gate).is_ok()
    };
    // Which of the two is excused depends on the user who runs this.
    let reason = if is_root() { "root reads every directory" } else { "only root can be several users" };
    let excused = &format!("a\tv\t{reason}\n");
    assert!(outcome("", true) && outcome(excused, true) && outcome(LIST, false));
    assert!(!outcome(LIST, true));
    assert!(!outcome("half a line", true));
    assert!(end(&scratch.path().join("none"), true).is_ok());
    assert_eq!(not_excused(LIST, &reasons(LIST, |_| false)), 3);
}

#[test]
fn a_machine_that_has_the_ability_has_no_excuse() {
    let cases = [
        ("no btrfs can be mounted here (not root, or no mkfs)", MOUNTS),
        ("losetup -f --show /x: Permission denied", MOUNTS),
        ("only root can act as others", ROOT),
        ("the kernel has no throttle of control groups, version 1", THROTTLE),
        ("no control groups that bound memory", MEMORY_GROUPS),
        ("no limit can be set on xfs: a package or a part of this kernel is missing", QUOTAS),
        ("uquota is no option of xfs here", QUOTAS),
        ("mkfs.ext4: mount: wrong fs type, bad option", FOLDING),
    ];
    for (reason, because) in cases {
        assert!(is_excused(reason, ""), "{reason}");
        assert!(!is_excused(reason, because), "{reason}");
    }
    assert!(!is_excused("fio is not installed", ""));
}

/// Whether a gate accepts a reason on a machine that has one ability, which is named by its excuse.
fn is_excused(reason: &str, able: &str) -> bool {
    let line = format!("a\tt\t{reason}");
    not_excused(&line, &reasons(&line, |excuse| excuse.because == able)) == 0
}

/// Every machine that runs the gate as root has these.
#[test]
fn a_gate_without_fuse_or_io_uring_fails() {
    for reason in ["/dev/fuse: No such file or directory (os error 2)", "/dev/fuse is not there"] {
        assert!(!is_excused(reason, ROOT) && is_excused(reason, ""), "{reason}");
    }
    for reason in ["no io_uring here; worker threads go on by themselves", "moto_server is not on the path"] {
        assert!(!is_excused(reason, ""), "{reason}");
    }
}

#[test]
fn each_probe_answers_twice_the_same() {
    for excuse in EXCUSES {
        assert_eq!((excuse.is_able)(), (excuse.is_able)(), "{}", excuse.because);
    }
    let is_able = |reason: &str| (EXCUSES.iter().find(|excuse| excuse.reasons.contains(&reason)).unwrap().is_able)();
    assert_ne!(is_able("only root"), is_able("root reads every directory"));
}
