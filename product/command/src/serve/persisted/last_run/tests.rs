mod starts;

use std::os::unix::fs::PermissionsExt;

use super::*;

const VERIFIER: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 0xf8];

fn directory() -> afflux_scratch::Scratch {
    afflux_scratch::Scratch::new(&std::env::temp_dir(), "last-run").unwrap()
}

#[test]
fn each_server_finds_how_the_last_one_ended() {
    let scratch = directory();
    let path = scratch.path().join("write-verifier");
    assert_eq!(LastRun::read(&path).unwrap(), LastRun::Unknown);
    begin(&path, 7).unwrap();
    assert_eq!(LastRun::read(&path).unwrap(), LastRun::Begun { run_id: 7 });
    end(&path, 7, VERIFIER).unwrap();
    assert_eq!(LastRun::read(&path).unwrap(), LastRun::Ended { verifier: VERIFIER, run_id: 7 });
    begin(&path, u64::MAX).unwrap();
    assert_eq!(LastRun::read(&path).unwrap(), LastRun::Begun { run_id: u64::MAX }, "the verifier is taken once");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else stays");
}

#[test]
fn nonsense_is_an_error_and_not_a_missing_file() {
    let scratch = directory();
    let path = scratch.path().join("write-verifier");
    let ours = "0123456789abcdef";
    let nonsense =
        ["", "12", ours, "+123456789abcdef", "0123456789abcdefg", "0123 56789abcdef", "serving", "serving\n12"];
    for text in nonsense.into_iter().map(str::to_owned).chain([format!("{ours}\n12"), format!("{ours}\n{ours}\nx")]) {
        fs::write(&path, &text).unwrap();
        assert!(LastRun::read(&path).is_err(), "{text:?}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(LastRun::read(&path).is_err());
    assert!(begin(&path, 1).is_err(), "what cannot be replaced nor removed is told");
    if rustix::process::geteuid().is_root() {
        return;
    }
    fs::remove_dir(&path).unwrap();
    begin(&path, 1).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let refused = begin(&path, 2).is_err();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(refused);
}
