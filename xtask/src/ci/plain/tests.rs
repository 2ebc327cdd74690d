//! rule: the tests run as a plain user, without packages and with the limits of a login, too

use std::path::Path;

use super::{LONG, Plain, is_for_gate, obstacle};
use crate::{limited, repository};

#[test]
fn a_program_runs_as_a_user_without_packages_and_with_few_descriptors() {
    if let Some(obstacle) = obstacle() {
        return afflux_scratch::skipped!("{obstacle}");
    }
    let user = Plain::prepare().unwrap();
    // Whatever the path of the host has, fio and valgrind are no part of a bare system.
    let script = "id -u; id -G; ulimit -Sn; echo $PPID; command -v fio valgrind || echo none; touch $HOME/x $TARGET/tmp/x; \
                  ls -d $ROOT/Cargo.toml > /dev/null; ls $CARGO_HOME > /dev/null; echo a >> $AFFLUX_SKIPPED";
    let file = user.scratch.path().join("program");
    std::fs::write(&file, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
    let mut shell = user.command(Path::new("/bin/sh"), &[]);
    shell.arg(&file);
    let (is_right, said) = limited::run(shell).unwrap();
    assert!(is_right, "{said}");
    assert_eq!(said, "1000\n1000\n1024\n1\nnone\n");
    assert!(!repository::target().join("tmp/x").exists(), "it is the user's own folder");
}

/// A renamed folder would be in the gate again, for minutes.
#[test]
fn what_is_left_to_the_night_is_there() {
    for folder in LONG {
        let folder = repository::root().join(folder);
        assert!(folder.exists(), "{}", folder.display());
        assert!(!is_for_gate(&folder));
    }
    assert!(is_for_gate(&repository::root().join("product/nfs/src/lib.rs")));
}
