//! `serve --check` beside the start: both refuse the same settings, in the same words.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::scratch::Scratch;
use crate::server::{Server, afflux, run, text};

/// A user other than the one who runs the tests.
const STRANGER: u32 = 65_534;

/// The arguments after the command, without `--check`.
type Arguments = Vec<String>;

fn arguments(words: &[&str]) -> Arguments {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Gives a command the environment of another.
fn take_environment(of: &Command, command: &mut Command) {
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// The outcome of a start that is refused. One that is not would run on.
fn started(home: &Path, words: &[String]) -> Output {
    let mut command = Command::new("timeout");
    let alone = afflux(home);
    command.args(["-s", "INT", "20"]).arg(alone.get_program());
    take_environment(&alone, &mut command);
    command.stdin(Stdio::null()).args(words).output().unwrap()
}

fn checked(home: &Path, words: &[String]) -> Output {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--check"]).collect();
    run(home, &words)
}

/// Everything below a directory.
fn listed(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = entries.collect();
    let below: Vec<PathBuf> =
        all.iter().filter(|path| path.is_dir() && !path.is_symlink()).flat_map(|path| listed(path)).collect();
    all.extend(below);
    all.sort();
    all
}

#[test]
fn a_check_refuses_what_the_start_refuses_in_the_same_words() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let path = |name: &str| home.join(name).display().to_string();
    let make = |name: &str| scratch.directory(name).display().to_string();
    let data = make("data");
    make("a/data");
    make("b/data");
    make("data/inner");
    fs::write(home.join("file"), "x").unwrap();
    fs::write(home.join("shm-like"), "x").unwrap();
    fs::create_dir(home.join("open")).unwrap();
    fs::set_permissions(home.join("open"), Permissions::from_mode(0o777)).unwrap();
    make("fixed/write-verifier");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = address.replace("127.0.0.1", "127.9.1.3");
    let _socket = UnixListener::bind(home.join("taken.sock")).unwrap();
    let long = path(&"l".repeat(150));
    let served = Server::start(&scratch.directory("other home"), &[&scratch.directory("served")], &[]);
    let control = served.control.display().to_string();
    let (own, above) = (path("served"), scratch.path().display().to_string());
    let serve = |words: &[&str]| [arguments(&["serve", "--listen", "127.0.0.1:0"]), arguments(words)].concat();
    let mount = |words: &[&str]| [arguments(&["mount"]), arguments(words)].concat();
    let (odd, arena) = (path("shm-like"), path("no/arena"));
    let memory = format!("/dev/shm/afflux-check-{}", std::process::id());
    let kept = |words: &[&str]| [serve(&[&data, "--cache", "64MiB", "--arena", &memory]), arguments(words)].concat();
    let mut table = vec![
        serve(&[&path("none")]),
        serve(&[&path("file")]),
        serve(&[&path("a/data"), &path("b/data")]),
        serve(&[&data, &data]),
        serve(&[&data, &path("data/inner")]),
        // Not the root: for a moment it is claimed, and other tests start servers.
        serve(&[&above]),
        serve(&[&own]),
        arguments(&["serve", &data, "--listen", &address]),
        arguments(&["serve", &data, "--listen", "192.0.2.7:2049"]),
        serve(&[&data, "--metrics", &address]),
        serve(&[&data, "--metrics", "192.0.2.7:9090"]),
        arguments(&["serve", &data, "--listen", &free, "--metrics", &free]),
        serve(&[&data, "--control", &control]),
        serve(&[&data, "--control", &path("file")]),
        serve(&[&data, "--control", &path("taken.sock")]),
        serve(&[&data, "--control", &path("none/control.sock")]),
        serve(&[&data, "--control", &path("open/control.sock")]),
        serve(&[&data, "--state", &path("open")]),
        serve(&[&data, "--state", &path("fixed")]),
        kept(&["--state", &path("file")]),
        kept(&["--state", &path("file/state")]),
        kept(&["--state", "/dev/null"]),
        kept(&["--state", "/proc/afflux"]),
        kept(&["--state", "/sys/afflux"]),
        serve(&[&data, "--arena", &odd]),
        serve(&[&data, "--arena", &arena]),
        serve(&[&data, "--arena", "/dev/shm"]),
        serve(&[&data, "--cache", "64MiB", "--arena", "/dev/shm/afflux-check", "--subtree-check"]),
        serve(&[&data, "--cache", "1TiB", "--arena", "/dev/shm/afflux-check"]),
        serve(&[&data, "--set", "writeback_depth=4"]),
        serve(&[&data, "--set", "dirty_background_bytes=900GB"]),
        serve(&[&data, "--kernel-cache"]),
        serve(&[&data, "--mount", &path("none")]),
        serve(&[&data, "--mount", &path("file")]),
        serve(&[&data, &path("a/data"), "--mount", &data]),
        serve(&["s3://"]),
        serve(&["s3://bucket/x", &data]),
        mount(&[&data]),
        mount(&[&data, &path("none")]),
        mount(&[&data, &path("file")]),
        mount(&[&path("none"), &data]),
        mount(&[&data, &data, "--listen", "127.0.0.1:0"]),
        mount(&[&data, &path("a"), "--arena", "/dev/shm/afflux-check"]),
        mount(&[&data, &path("a"), "--state", &path("a/data/state")]),
    ];
    if rustix::process::geteuid().is_root() {
        let theirs = make("theirs");
        std::os::unix::fs::chown(&theirs, Some(STRANGER), None).unwrap();
        table.push(serve(&[&data, "--state", &theirs]));
        table.push(serve(&[&data, "--control", &format!("{theirs}/control.sock")]));
    }
    table.push(serve(&[&data, "--control", &long]));
    let before = listed(home);
    let checks: Vec<Output> = table.iter().map(|words| checked(home, words)).collect();
    // The directory of the default control socket belongs to every command.
    let after = listed(home).into_iter().filter(|path| *path != home.join("afflux"));
    assert_eq!(after.collect::<Vec<_>>(), before, "the checks left nothing");
    for (words, check) in table.iter().zip(checks) {
        let start = started(home, words);
        let (said, told) = (text(&check), text(&start));
        assert!(matches!(start.status.code(), Some(1 | 2)), "{words:?} starts, so it is no bad setting: {told}");
        assert_eq!(check.status.code(), start.status.code(), "{words:?}\ncheck: {said}\nstart: {told}");
        let message = said.lines().rfind(|line| !line.is_empty()).unwrap_or_default().trim_start_matches("error: ");
        // Servers of other tests come and go.
        let (message, told) = (without_numbers(message), without_numbers(&told));
        assert!(message.len() > 15 && told.contains(&message), "{words:?}\ncheck: {said}\nstart: {told}");
    }
    served.stop();
}

/// A text without the numbers of processes.
fn without_numbers(text: &str) -> String {
    let is_kept = |part: &char| !part.is_ascii_digit() && *part != ',';
    let text: String = text.chars().filter(is_kept).collect();
    text.replace("processes", "process").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_check_of_good_settings_leaves_nothing_and_so_does_one_beside_the_server_that_is_reloaded() {
    let scratch = Scratch::new();
    let (home, data) = (scratch.path(), scratch.directory("data"));
    let words = |more: &[&str]| {
        let first = ["serve", data.to_str().unwrap(), "--cache", "64MiB", "--listen", "127.0.0.1:0"];
        arguments(&[&first[..], more].concat())
    };
    let before = listed(home);
    let new = home.join("new/state").display().to_string();
    let [beside, within] = ["new/control.sock", "new/state/control.sock"].map(|it| home.join(it).display().to_string());
    for more in [
        &[][..],
        &["--state", &new],
        &["--state", &new, "--control", &beside],
        &["--state", &new, "--control", &within],
        &["--io", "syscalls"],
    ] {
        let check = checked(home, &words(more));
        assert_eq!((check.status.code(), text(&check)), (Some(0), "The settings are valid.\n".to_owned()), "{more:?}");
        // The directory of the default control socket belongs to every command.
        let made = listed(home).into_iter().filter(|path| !before.contains(path) && *path != home.join("afflux"));
        assert_eq!(made.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "{more:?}");
    }
    for state in ["/dev/null", "/proc/afflux"] {
        let check = checked(home, &words(&["--state", state]));
        let said = format!("warning: the disks' measured speeds are not kept until the next start ({state}");
        assert!(check.status.success() && text(&check).contains(&said), "a start warns, too: {}", text(&check));
    }
    let server = Server::start(home, &[&data], &[]);
    let (listen, control) = (format!("127.0.0.1:{}", server.port()), server.control.display().to_string());
    let same = ["serve", data.to_str().unwrap(), "--listen", &listen, "--control", &control, "--check"];
    let alone = run(home, &same);
    assert!(alone.status.code() == Some(1) && text(&alone).contains("another server serves it"), "{}", text(&alone));
    // So systemd runs the commands of a unit.
    let reload = afflux(home).args(same).env("MAINPID", server.process().to_string()).output().unwrap();
    assert!(reload.status.success(), "{}", text(&reload));
    server.stop();
}

#[test]
fn no_link_of_another_user_in_the_state_directory_is_followed() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("another user's links need root");
        return;
    }
    let scratch = Scratch::new();
    let (home, data, state) = (scratch.path(), scratch.directory("data"), scratch.directory("state"));
    // Names that a server makes: $$ is its process.
    let names = [
        "handle-key",
        "handle-key.new-$$",
        "places",
        "places.new-$$",
        "disks.json",
        "disks.new-$$",
        "write-verifier",
        "write-verifier.new-$$",
        "write-verifier.taken-$$",
        "govern-disks.json",
        "govern-disks.new-$$",
    ];
    let victims = scratch.directory("victims");
    let links: String = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            fs::write(victims.join(number.to_string()), "mine").unwrap();
            format!("ln -s {}/{number} {}/{name}; ", victims.display(), state.display())
        })
        .collect();
    let owned = |by: &str| format!("{links} chown -h {STRANGER} {0}/* {by}; exec \"$0\" \"$@\"", state.display());
    for (by, starts) in [(state.to_str().unwrap(), false), ("", true)] {
        fs::read_dir(&state).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap());
        std::os::unix::fs::chown(&state, Some(0), None).unwrap();
        let mut shell = Command::new("sh");
        let alone = afflux(home);
        take_environment(&alone, &mut shell);
        let control = home.join("control.sock");
        shell.arg("-c").arg(owned(by)).arg(alone.get_program()).arg("serve").arg(&data);
        shell.args(["--listen", "127.0.0.1:0", "--json", "--cache", "64MiB"]).arg("--control").arg(&control);
        shell.arg("--state").arg(&state);
        if starts {
            Server::spawn(shell, control, home).stop();
        } else {
            let refused = shell.output().unwrap();
            let said = text(&refused);
            assert!(refused.status.code() == Some(1) && said.contains("belongs to user 65534"), "{said}");
        }
        for (number, name) in names.iter().enumerate() {
            assert_eq!(fs::read_to_string(victims.join(number.to_string())).unwrap(), "mine", "{name}");
        }
    }
}

#[test]
fn a_control_socket_may_have_a_long_path() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let home = scratch.directory(&format!("{0}/{0}/{0}", "long".repeat(20)));
    let server = Server::start(&home, &[&data], &[]);
    assert!(server.control.as_os_str().len() > 200);
    let said = text(&server.ask(&["stat"]));
    assert!(said.contains("client") || said.contains("device") || said.contains("cache"), "{said}");
    let again = checked(&home, &arguments(&["serve", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]));
    assert!(text(&again).contains("another server serves"), "{}", text(&again));
    server.stop();
}

#[test]
fn a_state_directory_behind_a_link_of_this_user_is_used() {
    let scratch = Scratch::new();
    let (home, data) = (scratch.path(), scratch.directory("data"));
    scratch.directory("real");
    symlink("real", home.join("link")).unwrap();
    let state = home.join("link/state");
    Server::start(home, &[&data], &["--state", state.to_str().unwrap()]).stop();
    assert!(home.join("real/state/handle-key").exists());
}
