use std::fs;

use afflux_scratch::Scratch;

use super::*;

fn started(place: &Scratch, script: &str) -> io::Result<Mounted> {
    let (point, mut shell) = (place.path().join("point"), Command::new("sh"));
    Mounted::start(shell.args(["-c", script, "sh"]).arg(&point), &point, &place.path().join("log"))
}

#[test]
fn the_last_words_of_a_program_that_does_not_mount_are_told() {
    let place = Scratch::new(&std::env::temp_dir(), "mounted").unwrap();
    let error = started(&place, "echo first >&2; echo no such device >&2").unwrap_err().to_string();
    assert_eq!(error, "sh does not mount: no such device");
}

#[test]
fn a_mount_ends_with_its_program_and_with_its_value() {
    let place = Scratch::new(&std::env::temp_dir(), "mounted").unwrap();
    let script = "mount -t tmpfs none \"$1\" && while mountpoint -q \"$1\"; do sleep 0.05; done";
    let mounted = match started(&place, script) {
        Ok(mounted) => mounted,
        Err(error) => return afflux_scratch::skipped!("nothing may be mounted here: {error}"),
    };
    fs::write(mounted.point().join("file"), "bytes").unwrap();
    let point = mounted.point().to_owned();
    assert!(mounted.end().unwrap().success());
    assert_eq!(fs::read_dir(&point).unwrap().count(), 0, "the mount is gone");
    drop(started(&place, script).unwrap());
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(point.to_str().unwrap()));
}
