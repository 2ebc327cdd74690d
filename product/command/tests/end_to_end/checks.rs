//! `serve --check` beside the start: both refuse the same settings, in the same words.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::mounted::{Mounted, can_mount, is_mounted};
use crate::scratch::{Scratch, can_be_several_users};
use crate::server::{Server, afflux, run, text};

/// A user other than the one who runs the tests.
const STRANGER: u32 = 65_534;

/// The arguments after the command, without `--check`.
type Arguments = Vec<String>;

/// A command line that a start refuses.
struct Refused {
    /// The program and its arguments that run the command; none runs it directly.
    through: Arguments,
    words: Arguments,
}

impl Refused {
    fn command(&self, home: &Path, timeout: &[&str], last: &[&str]) -> Output {
        let alone = afflux(home);
        let program = alone.get_program().to_string_lossy().into_owned();
        let line = [arguments(timeout), self.through.clone(), vec![program], self.words.clone(), arguments(last)];
        let line = line.concat();
        let mut command = Command::new(&line[0]);
        take_environment(&alone, &mut command);
        command.stdin(Stdio::null()).args(&line[1..]).output().unwrap()
    }

    /// The outcome of the start. One that is not refused would run on.
    fn started(&self, home: &Path) -> Output {
        self.command(home, &["timeout", "-s", "INT", "20"], &[])
    }

    fn checked(&self, home: &Path) -> Output {
        self.command(home, &[], &["--check"])
    }
}

/// Asserts that a start and a check refuse these in the same words. The checks leave nothing.
fn assert_refused(home: &Path, table: &[Refused]) {
    // The directory of the default control socket belongs to every command.
    let files = || listed(home).into_iter().filter(|path| *path != home.join("afflux")).collect::<Vec<_>>();
    let before = files();
    let checks: Vec<Output> = table.iter().map(|case| case.checked(home)).collect();
    assert_eq!(files(), before, "the checks left nothing");
    let outcomes = table.iter().zip(checks).map(|(case, check)| (case, check, case.started(home)));
    let wrong = outcomes.filter(|(_, check, start)| !are_alike(check, start)).map(|(case, check, start)| {
        let line = [&case.through[..], &case.words].concat();
        format!("{line:?}\n check: {}\n start, {}: {}", text(&check), start.status, text(&start))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether both are refused for one reason.
pub(crate) fn are_alike(check: &Output, start: &Output) -> bool {
    let (said, told) = (text(check), text(start));
    let message = said.lines().rfind(|line| !line.is_empty()).unwrap_or_default().trim_start_matches("error: ");
    // Servers of other tests come and go.
    let (message, told) = (without_numbers(message), without_numbers(&told));
    let is_refused = matches!(start.status.code(), Some(1 | 2)) && check.status.code() == start.status.code();
    is_refused && message.len() > 15 && told.contains(&message)
}

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
    // A server that runs writes to its own directories, whenever it likes.
    let others = Scratch::new();
    let served = Server::start(others.path(), &[&scratch.directory("served")], &[]);
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
        // One path for two things.
        kept(&["--control", &memory]),
        kept(&["--control", &format!("/dev/shm/../shm/{}", memory.trim_start_matches("/dev/shm/"))]),
        kept(&["--state", &memory]),
        serve(&[&data, "--state", &path("new"), "--control", &path("new")]),
        serve(&[&data, "--state", &path("new"), "--control", &path("new/server")]),
        serve(&[&data, "--state", &path("new"), "--control", &path("new/handle-key")]),
    ];
    if rustix::process::geteuid().is_root() {
        let theirs = make("theirs");
        std::os::unix::fs::chown(&theirs, Some(STRANGER), None).unwrap();
        table.push(serve(&[&data, "--state", &theirs]));
        table.push(serve(&[&data, "--control", &format!("{theirs}/control.sock")]));
    }
    table.push(serve(&[&data, "--control", &long]));
    let table = table.into_iter().map(|words| Refused { through: Vec::new(), words });
    assert_refused(home, &table.collect::<Vec<_>>());
    served.stop();
}

/// A start of a store is refused before its first request, and so is a check. A check that passes sends none.
#[cfg(feature = "object")]
#[test]
fn a_check_of_a_store_refuses_what_the_start_refuses_before_its_first_request() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let serve = |words: &[&str]| {
        [arguments(&["serve", "--listen", "127.0.0.1:0", "--cache", "64MiB"]), arguments(words)].concat()
    };
    // A server that runs writes to its own directories, whenever it likes.
    let others = Scratch::new();
    let served = others.directory("volume").display().to_string();
    let address = |path: &str| format!("file://{path}");
    let server = Server::start(others.path(), &[Path::new(&address(&served))], &[]);
    let no_file = home.join("none").display().to_string();
    let bucket = ["s3://bucket/x", "--endpoint", "http://127.0.0.1:9"];
    let table = [
        (vec![], serve(&[&address(&served)])),
        (vec![], serve(&[&address(&home.join("none/volume").display().to_string())])),
        (vec![], serve(&[&address(&no_file), "--follow"])),
        (vec![], serve(&["az://container/x"])),
        (vec!["AWS_CA_BUNDLE=".to_owned() + &no_file], serve(&bucket)),
        (vec!["AWS_ACCESS_KEY_ID=half".to_owned()], serve(&bucket)),
        (vec!["AWS_PROFILE=none".to_owned(), "AWS_CONFIG_FILE=".to_owned() + &no_file], serve(&bucket)),
        (vec!["GOOGLE_BASE_URL=store:9000".to_owned()], serve(&["gs://bucket/x"])),
        (vec!["HTTPS_PROXY=socks9://x".to_owned()], serve(&bucket)),
    ];
    let through = |variables: Vec<String>| [arguments(&["env"]), variables].concat();
    assert_refused(home, &table.map(|(variables, words)| Refused { through: through(variables), words }));
    server.stop();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    relay.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", relay.local_addr().unwrap());
    for place in [&["s3://bucket/x", "--endpoint", &endpoint][..], &[&address(&no_file)]] {
        let words = Refused {
            through: arguments(&["env", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret"]),
            words: serve(place),
        };
        let check = words.checked(home);
        let said = "The settings are valid; the store was not asked.\n".to_owned();
        assert_eq!((check.status.code(), text(&check)), (Some(0), said), "{place:?}");
    }
    assert!(relay.accept().is_err() && !Path::new(&no_file).exists());
}

#[test]
fn a_check_says_that_only_a_unit_of_systemd_can_start_what_systemd_keeps() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root is sure to be allowed to open files by handle");
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data").display().to_string();
    let words = arguments(&["serve", "--listen", "127.0.0.1:0", "--cache", "64MiB", "--arena", "systemd", &data]);
    let by_hand = Refused { through: arguments(&["env", "-u", "NOTIFY_SOCKET"]), words };
    let (check, start) = (by_hand.checked(scratch.path()), by_hand.started(scratch.path()));
    let why = "--arena systemd: this server is not run by systemd (NOTIFY_SOCKET is not set)";
    assert!(check.status.success() && text(&check).contains(why), "{}", text(&check));
    assert!(text(&check).contains("a start by its unit alone succeeds"), "{}", text(&check));
    assert!(start.status.code() == Some(2) && text(&start).contains(why), "{}", text(&start));
}

#[test]
fn a_check_refuses_what_the_users_own_directory_for_state_refuses_to_a_start() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let data = scratch.directory("data").display().to_string();
    let memory = format!("/dev/shm/afflux-state-{}", std::process::id());
    // A directory in place of a file, and vice versa.
    for name in ["server", "write-verifier", "starts"] {
        scratch.directory(&format!("{name} state/afflux/{name}"));
    }
    scratch.directory("servers state/afflux");
    fs::write(home.join("servers state/afflux/servers"), "x").unwrap();
    let refused = ["server", "write-verifier", "starts", "servers"].map(|name| Refused {
        through: vec!["env".to_owned(), format!("XDG_STATE_HOME={}", home.join(format!("{name} state")).display())],
        words: arguments(&["serve", "--listen", "127.0.0.1:0", &data, "--cache", "64MiB"]),
    });
    assert_refused(home, &refused);
    let words = ["serve", "--listen", "127.0.0.1:0", &data, "--cache", "64MiB", "--arena", &memory];
    let through = arguments(&["env", "XDG_STATE_HOME=/proc/afflux", &format!("HOME={}", home.display())]);
    assert_refused(home, &[Refused { through, words: arguments(&words) }]);
    assert!(!Path::new(&memory).exists());
}

#[test]
fn a_check_refuses_for_want_of_rights_as_the_start_does() {
    if !can_mount() || !can_be_several_users() {
        return;
    }
    let (scratch, programs) = (Scratch::new(), Scratch::new());
    let home = scratch.path();
    let (data, point) = (scratch.directory("data"), scratch.directory("point"));
    let run = scratch.directory("run").display().to_string();
    let owned = scratch.directory("owned");
    std::os::unix::fs::chown(&owned, Some(STRANGER), None).unwrap();
    let [data, point, owned] = [data, point, owned].map(|path| path.display().to_string());
    let memory = format!("/dev/shm/afflux-rights-{}", std::process::id());
    let bound =
        |right: &str| vec!["setpriv".to_owned(), format!("--bounding-set=-{right}"), format!("--inh-caps=-{right}")];
    let script = |script: &str| arguments(&["sh", "-c", script, "sh"]);
    let few_locked = [script("ulimit -l 64 && exec \"$@\""), bound("ipc_lock")].concat();
    let reloaded = script("MAINPID=$$ exec \"$@\"");
    let no_device = arguments(&["unshare", "-m"]);
    let no_device = [no_device, script("mount --bind /dev/null /dev/fuse && exec \"$@\"")].concat();
    let program = programs.program_for_others().display().to_string();
    // The first word is the program at a path that others may not reach.
    let stranger = |path: &str| {
        let user = format!("/usr/bin/setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups");
        script(&format!("shift; exec /usr/bin/env PATH={path} {user} {program} \"$@\""))
    };
    let mount = arguments(&["mount", "--cache", "64MiB", &data, &point]);
    let locked = arguments(&["serve", "--listen", "127.0.0.1:0", "--cache", "64MiB", "--lock-memory", "on", &data]);
    let kept = [locked.clone(), arguments(&["--arena", &memory])].concat();
    let of_run = format!("XDG_RUNTIME_DIR={run}");
    let table = [
        (bound("sys_admin"), mount.clone()),
        (bound("sys_chroot"), mount.clone()),
        (no_device, mount.clone()),
        (stranger("/nowhere"), arguments(&["mount", "--cache", "64MiB", &data, &owned])),
        (stranger("/usr/bin:/bin"), mount),
        (few_locked.clone(), locked.clone()),
        (few_locked.clone(), kept),
        ([reloaded, few_locked].concat(), locked),
        (arguments(&["env", &of_run]), arguments(&["mount", "--cache", "64MiB", &data, &run])),
    ];
    // The directory of the default control socket belongs to every command.
    scratch.directory("run/afflux");
    fs::set_permissions(Path::new(&run).join("afflux"), Permissions::from_mode(0o700)).unwrap();
    assert_refused(home, &table.map(|(through, words)| Refused { through, words }));
    assert!(!Path::new(&memory).exists(), "a start that is refused keeps no memory");
    assert!(!is_mounted(Path::new(&point)));
}

#[test]
fn a_check_and_a_start_refuse_a_mount_that_hides_what_others_need() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data").display().to_string();
    let state = scratch.directory("state").display().to_string();
    let mut points = ["/", "/proc", "/proc/sys", "/sys", "/dev", "/dev/shm", &state].map(|point| {
        let words = ["mount", "--cache", "64MiB", "--state", &state, &data, point];
        // A start that is not refused hides nothing from this test's host.
        Refused { through: arguments(&["unshare", "-m"]), words: arguments(&words) }
    });
    points[0].words = arguments(&["serve", "--listen", "127.0.0.1:0", "--mount", "/", &data]);
    assert_refused(scratch.path(), &points);
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
fn a_check_of_a_mount_mounts_for_nobody_and_one_before_a_reload_finds_the_mount_its_own() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (home, data, point) = (scratch.path(), scratch.directory("data"), scratch.directory("point"));
    let words = |point: &Path| {
        let [data, point] = [data.as_path(), point].map(|path| path.display().to_string());
        arguments(&["mount", "--cache", "64MiB", &data, &point])
    };
    for place in [&point, &data] {
        let check = checked(home, &words(place));
        assert_eq!((check.status.code(), text(&check)), (Some(0), "The settings are valid.\n".to_owned()));
        assert!(!is_mounted(place));
        fs::read_dir(place).unwrap();
    }
    fs::write(data.join("file"), "x").unwrap();
    let mounted = Mounted::start(home, &data, &data);
    let control = mounted.server().control.display().to_string();
    let words = [words(&data), arguments(&["--control", &control])].concat();
    let alone = checked(home, &words);
    assert!(text(&alone).contains("is mounted by Afflux already"), "{}", text(&alone));
    let mut reload = afflux(home);
    reload.args(&words).arg("--check").env("MAINPID", mounted.server().process().to_string());
    let reload = reload.output().unwrap();
    assert_eq!((reload.status.code(), text(&reload)), (Some(0), "The settings are valid.\n".to_owned()));
    assert_eq!(fs::read_to_string(mounted.path("file")).unwrap(), "x");
    mounted.stop();
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
