//! `afflux govern` on a made-up sysfs.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use afflux_scratch::eventually;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::scratch::{Scratch, can_be_several_users};

const NOBODY: u32 = 65_534;

/// A made-up machine with one disk.
pub(crate) struct Tree {
    root: PathBuf,
    scratch: Scratch,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let tree = Self { root: scratch.directory("root"), scratch };
        tree.write("proc/vmstat", "nr_dirty_threshold 1171875\nnr_dirty_background_threshold 585937\n");
        tree.write("proc/sys/kernel/random/boot_id", "one\n");
        tree.write("proc/self/mountinfo", "");
        for (file, text) in
            [("size", "2000"), ("ro", "0"), ("dev", "8:16"), ("diskseq", "1"), ("device/model", "Stick")]
        {
            tree.write(&format!("sys/devices/sdb/{file}"), text);
        }
        tree.write("sys/devices/sdb/stat", "0 0 0 0 0 0 0 0 0 0 0\n");
        for place in ["sys/dev/block/8:16", "sys/class/block/sdb"] {
            fs::create_dir_all(tree.root.join(place).parent().unwrap()).unwrap();
            symlink(tree.root.join("sys/devices/sdb"), tree.root.join(place)).unwrap();
        }
        tree.bdi("0", "1000000");
        tree.write("sys/class/bdi/8:16/max_ratio", "100\n");
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn bdi(&self, strict: &str, ratio: &str) {
        self.write("sys/class/bdi/8:16/strict_limit", strict);
        self.write("sys/class/bdi/8:16/max_ratio_fine", ratio);
    }

    fn values(&self) -> (String, String) {
        let says = |file: &str| fs::read_to_string(self.root.join("sys/class/bdi/8:16").join(file)).unwrap();
        (says("strict_limit").trim().to_owned(), says("max_ratio_fine").trim().to_owned())
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.values() == ("0".to_owned(), "1000000".to_owned())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afflux"));
        command.arg("govern").arg("--root").arg(&self.root).arg("--state").arg(self.root.join("state")).args(arguments);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts a governor and waits for the first line of its log.
    fn govern(&self) -> Child {
        let mut child = self.command(&[]).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("note: sdb: at most"), "{line}");
        eventually("the kernel has the values", || self.values().0 == "1");
        child
    }
}

fn signal(child: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(child), signal).unwrap();
    child.wait().unwrap().code()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_was_set_is_put_back_on_sigterm_and_after_a_kill() {
    let tree = Tree::new();
    let mut governor = tree.govern();
    assert_eq!(signal(&mut governor, Signal::TERM), Some(0));
    assert!(tree.is_untouched());
    // Root's server has its control socket in the same directory, and refuses an open directory.
    let mode = fs::metadata(tree.root.join("run/afflux")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    let mut killed = tree.govern();
    assert_eq!(signal(&mut killed, Signal::KILL), None);
    assert!(!tree.is_untouched());
    let output = tree.output(&["--status"]);
    assert!(said(&output).contains("--restore puts them back"), "{}", said(&output));
    let output = tree.output(&["--restore"]);
    assert!(output.status.success() && said(&output).contains("sdb: its settings are put back"), "{}", said(&output));
    assert!(tree.is_untouched());
    assert!(said(&tree.output(&["--restore"])).contains("There is nothing to put back"));
}

#[test]
fn what_happens_to_a_governor_is_its_log_with_levels_and_json_is_for_programs() {
    let tree = Tree::new();
    let mut command = tree.command(&["--log", "warn"]);
    let mut governor = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the kernel has the values", || tree.values().0 == "1");
    tree.bdi("1", "77");
    let mut line = String::new();
    BufReader::new(governor.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("warning: sdb: another program has set strict_limit 1"), "{line}");
    kill_process(Pid::from_child(&governor), Signal::TERM).unwrap();
    let output = governor.wait_with_output().unwrap();
    assert_eq!(said(&output), "", "nothing on standard output, nothing less grave than a warning");

    let tree = Tree::new();
    let mut governor = tree.command(&["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(governor.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["event"], &event["device"]), (&"limited".into(), &"sdb".into()), "{line}");
    assert_eq!(signal(&mut governor, Signal::TERM), Some(0));
}

#[test]
fn a_second_governor_is_refused_and_so_is_taking_away_what_the_first_has_set() {
    let tree = Tree::new();
    let mut governor = tree.govern();
    let before = tree.values();
    for arguments in [&[][..], &["--restore"], &["--once"]] {
        let output = tree.output(arguments);
        let word = format!("another governor runs (process {})", governor.id());
        assert!(output.status.code() == Some(1) && said(&output).contains(&word), "{}", said(&output));
    }
    let status = said(&tree.output(&["--status"]));
    assert!(status.contains("A governor runs") && status.contains("Stick"), "{status}");
    assert_eq!(tree.values(), before);
    tree.bdi("1", "77");
    signal(&mut governor, Signal::INT);
    assert_eq!(tree.values(), ("1".to_owned(), "77".to_owned()), "what others set meanwhile stays");
}

#[test]
fn a_dry_run_and_a_look_at_unknown_disks_change_nothing() {
    let tree = Tree::new();
    for arguments in [&["--once", "--dry-run", "--json"][..], &["--dry-run"]] {
        // The time limit guards against a defect: this once ran until it was stopped.
        let mut command = Command::new("timeout");
        let own = tree.command(arguments);
        command.arg("60").arg(own.get_program()).args(own.get_args());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let output = tree.output(&["--once"]);
    assert!(output.status.success() && said(&output).contains("1 disk is left alone"), "{}", said(&output));
    assert!(tree.is_untouched());
}

#[test]
fn without_the_right_to_it_is_said_which_file_and_what_to_run() {
    let tree = Tree::new();
    let bdi = tree.root.join("sys/class/bdi/8:16");
    fs::set_permissions(bdi.join("strict_limit"), Permissions::from_mode(0o444)).unwrap();
    let mut command = tree.command(&[]);
    if geteuid().is_root() {
        // Root may change everything, so another user tries.
        if !can_be_several_users() {
            return;
        }
        command = Command::new(tree.scratch.program_for_others());
        command.args(["govern", "--root"]).arg(&tree.root).uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let said = said(&output);
    assert!(output.status.code() == Some(1) && said.contains("strict_limit: permission denied"), "{said}");
    assert!(said.contains("as root (sudo)") && tree.is_untouched(), "{said}");
}

#[test]
fn a_read_only_sysfs_is_told() {
    let tree = Tree::new();
    let bind = |arguments: &[&str]| Command::new("mount").args(arguments).output().is_ok_and(|it| it.status.success());
    let sys = tree.root.join("sys").to_string_lossy().into_owned();
    if !geteuid().is_root() || !bind(&["--bind", &sys, &sys]) {
        return afflux_scratch::skipped!("nothing may be mounted here");
    }
    let is_read_only = bind(&["-o", "remount,bind,ro", &sys]);
    let output = tree.output(&[]);
    let _ = Command::new("umount").arg(&sys).output();
    assert!(is_read_only);
    let said = said(&output);
    assert!(output.status.code() == Some(1) && said.contains("strict_limit is read-only"), "{said}");
}

#[test]
fn budgets_names_and_states_that_make_no_sense_are_told() {
    let tree = Tree::new();
    for (arguments, word) in [
        (&["--budget", "0"][..], "10ms to 1h"),
        (&["--budget", "8760h"], "10ms to 1h"),
        (&["--budget", "soon"], "not a time"),
        (&["--device", "sdb"], "NAME=TIME"),
        (&["--device", "=1s"], "name"),
        (&["--device", "sdb=0s"], "10ms to 1h"),
    ] {
        let output = tree.output(arguments);
        assert!(output.status.code() == Some(2) && said(&output).contains(word), "{arguments:?}: {}", said(&output));
    }
    assert!(said(&tree.output(&["--once", "--device", "sdq=1s"])).contains("no disk sdq now"));
    tree.write("run/afflux/govern.json", "{\"version\": 1,");
    for arguments in [&["--restore"][..], &["--status"]] {
        let output = tree.output(arguments);
        assert!(output.status.code() == Some(1) && said(&output).contains("makes no sense"), "{}", said(&output));
    }
    let output = tree.output(&["--once"]);
    assert!(output.status.success() && said(&output).contains("warning"), "{}", said(&output));
}

#[test]
fn what_is_kept_of_a_disk_is_in_force_at_the_next_start() {
    let tree = Tree::new();
    // 5 MB/s, persisted under the identity of the made-up disk.
    let prices = r#"{"write_run_ns":1000,"write_mib_ns":200000000,"read_run_ns":1000,"read_mib_ns":1000000}"#;
    let disk = format!(r#"{{"name":"sdb","served_unix_s":1,"prices":{prices}}}"#);
    let file = format!(r#"{{"version":1,"disks":{{"model=Stick sectors=2000":{disk}}}}}"#);
    tree.write("state/govern-disks.json", &file);
    let output = tree.output(&["--once"]);
    assert!(said(&output).contains("it writes 5.24 MB/s"), "{}", said(&output));
    assert_eq!(tree.values().0, "1");
    assert!(tree.output(&["--restore"]).status.success() && tree.is_untouched());
}
