//! Mistakes of a user on the command line, and of a peer on the wire.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, run, text};

/// Runs the command and returns the exit code and the output.
fn outcome(scratch: &Scratch, arguments: &[&str]) -> (i32, String) {
    let output = run(scratch.path(), arguments);
    (output.status.code().unwrap(), text(&output))
}

#[test]
fn a_directory_that_cannot_be_served_is_said_and_is_a_failure() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    fs::write(&file, "x").unwrap();
    let none = scratch.path().join("none");
    let (code, said) = outcome(&scratch, &["serve", none.to_str().unwrap()]);
    assert_eq!((code, said.contains("none does not exist")), (1, true), "{said}");
    let (code, said) = outcome(&scratch, &["serve", file.to_str().unwrap()]);
    assert_eq!((code, said.contains("file is not a directory; serve")), (1, true), "{said}");
}

#[test]
fn files_that_another_server_serves_are_refused() {
    let scratch = Scratch::new();
    let served = scratch.directory("served");
    fs::create_dir(served.join("inner")).unwrap();
    let beside = scratch.directory("beside");
    std::os::unix::fs::symlink(&served, scratch.path().join("link")).unwrap();
    let server = Server::start(scratch.path(), &[&served], &[]);
    let process = format!("(process {})", server.process());
    for (path, relation) in [
        (served.clone(), "another server serves it "),
        (scratch.path().join("link"), "another server serves it "),
        (served.join("inner"), "another server serves a directory above it "),
        (scratch.path().to_owned(), "another server serves a directory below it "),
    ] {
        let (code, said) = outcome(&scratch, &["serve", path.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(relation) && said.contains(&process) && said.contains("--shared"), "{said}");
    }
    let other = Server::start(&scratch.directory("home of another"), &[&beside], &[]);
    let shared = Server::start(&scratch.directory("home of a third"), &[&served], &["--shared"]);
    shared.stop();
    other.stop();
    server.kill();
    Server::start(scratch.path(), &[&served], &[]).stop();
}

#[test]
fn a_directory_that_is_not_readable_is_said() {
    if rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("root reads every directory");
        return;
    }
    let scratch = Scratch::new();
    let closed = scratch.directory("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, said) = outcome(&scratch, &["serve", closed.to_str().unwrap()]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((code, said.contains("cannot be read")), (1, true), "{said}");
}

#[test]
fn a_port_in_use_is_said_with_a_way_out() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let (code, said) = outcome(&scratch, &["serve", data.to_str().unwrap(), "--listen", &listen]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&format!("{listen} is in use")), "{said}");
    assert!(
        said.contains("by another program (") && said.contains(&format!("process {})", std::process::id())),
        "{said}"
    );
    assert!(said.contains("127.0.0.1:0 picks a free port"), "{said}");
}

#[test]
fn a_port_that_afflux_has_already_is_said_with_what_to_do() {
    let scratch = Scratch::new();
    let (data, other) = (scratch.directory("data"), scratch.directory("other"));
    let server = Server::start(scratch.path(), &[&data], &[]);
    let listen = format!("127.0.0.1:{}", server.port());
    let (code, said) = outcome(&scratch, &["serve", other.to_str().unwrap(), "--listen", &listen]);
    assert_eq!(code, 1, "{said}");
    let stop = format!("kill {}", server.process());
    for part in [&format!("{listen} is in use by Afflux itself"), "afflux stat", &stop, "127.0.0.1:0 picks a free"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    server.stop();
}

#[test]
fn nonsense_is_wrong_use_and_names_value_and_range() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let data = data.to_str().unwrap();
    for (arguments, parts) in [
        (vec!["serve"], vec!["no directory to serve: name one (afflux serve DIR)", "configuration file"]),
        (vec!["serve", data, "--cache", "1MiB"], vec!["'1MiB' for '--cache <SIZE>'", "16.0 MiB to "]),
        (vec!["serve", data, "--cache", "lots"], vec!["'lots' for '--cache <SIZE>'", "16.0 MiB to "]),
        (vec!["serve", data, "--listen", "here"], vec!["'here' for '--listen <ADDR:PORT>'", "0 to 65535"]),
        (vec!["serve", data, "--io", "fast"], vec!["'fast'", "auto, uring, syscalls"]),
        (vec!["serve", data, "--set", "dirty_ratio=91"], vec!["dirty_ratio: 91", "1 to 90 percent"]),
        (vec!["serve", data, "--set", "speed=1"], vec!["no knob 'speed'", "dirty_ratio, "]),
        (vec!["set", "budget_ms"], vec!["'budget_ms' is not KNOB=VALUE"]),
        (vec!["set", "speed=1"], vec!["no knob 'speed'", "dirty_ratio, "]),
        (vec!["serve", data, "--config", "/none"], vec!["/none"]),
        (vec!["serve", data, data], vec!["is named twice"]),
        (
            vec!["serve", data, "--set", "dirty_background_centisecs=360001"],
            vec!["dirty_background_centisecs: 360001", "0 to 360000 centiseconds"],
        ),
        (vec!["simulate", "backup.fio"], vec!["commands of afflux-lab", "afflux-lab simulate backup.fio"]),
        (vec!["lab", "run", "s4", "--quick"], vec!["afflux-lab run s4 --quick"]),
        (vec!["dance"], vec!["unrecognized subcommand 'dance'"]),
    ] {
        let (code, said) = outcome(&scratch, &arguments);
        let wanted = if arguments.contains(&"/none") { 1 } else { 2 };
        assert_eq!(code, wanted, "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
}

/// Names of knobs, policies and settings, on the command line and in the files that it names.
#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let data = data.to_str().unwrap();
    let file = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let knobs = file("knobs.toml", "[knobs]\ndirty_rato = 20\n");
    let settings = file("settings.toml", "cahce = '1GiB'\n");
    for (arguments, wanted) in [
        (vec!["serve", data, "--set", "dirty_rato=20"], "'dirty_ratio'"),
        (vec!["serve", data, "--config", &knobs], "'dirty_ratio'"),
        (vec!["serve", data, "--config", &settings], "'cache'"),
        (vec!["serve", data, "--io", "urin"], "'uring'"),
    ] {
        let (code, said) = outcome(&scratch, &arguments);
        assert_ne!(code, 0, "{arguments:?}");
        let hint = said.split_once("(did you mean ").or_else(|| said.split_once("a similar value exists: "));
        assert!(hint.is_some_and(|(_, names)| names.contains(wanted)), "{arguments:?}: {said}");
    }
    let server = Server::start(scratch.path(), &[std::path::Path::new(data)], &[]);
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    for arguments in [vec!["set", "budget_ms=500", "--device"], vec!["trace", "--for", "1s", "--device"]] {
        let said = text(&server.ask(&[&arguments[..], &[&format!("{name}x")]].concat()));
        assert!(said.contains(&format!("(did you mean '{name}'?)")), "{said}");
    }
    let said = text(&server.ask(&["set", "dirty_rato=20"]));
    assert!(said.contains("there is no knob 'dirty_rato' (did you mean 'dirty_ratio'?)"), "{said}");
    server.stop();
}

#[test]
fn a_mount_takes_two_paths_with_flags_between_them() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let (data, none) = (data.to_str().unwrap(), scratch.path().join("none"));
    let point = none.to_str().unwrap();
    for paths in [&[data, point, "--cache", "16MiB"][..], &[data, "--cache", "16MiB", point]] {
        let (code, said) = outcome(&scratch, &[&["mount"], paths].concat());
        assert_eq!((code, said.contains("none does not exist; make it")), (1, true), "{said}");
    }
    let (code, said) = outcome(&scratch, &["mount", data]);
    assert_eq!((code, said.contains("two paths are needed: afflux mount DIR MOUNTPOINT")), (2, true), "{said}");
    let (code, said) = outcome(&scratch, &["mount", data, "--cache", "16MiB", point, point]);
    assert_eq!((code, said.contains("two paths are needed")), (2, true), "{said}");
}

#[test]
fn the_environment_and_the_file_are_checked_too() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let output = afflux(scratch.path()).arg("serve").arg(&data).env("AFFLUX_CACHE", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("'1' for 'AFFLUX_CACHE': out of range (16.0 MiB to "), "{}", text(&output));
    let file = scratch.directory("afflux").join("config.toml");
    fs::write(&file, "\ncash = 1\n").unwrap();
    let (code, said) = outcome(&scratch, &["serve", data.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(said.contains("there is no setting 'cash'; allowed are listen, nfs, rpcbind"), "{said}");
    assert!(said.contains(&format!("{}:2: ", file.display())), "{said}");
}

#[test]
fn file_environment_and_flags_reach_the_server() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let file = scratch.directory("afflux").join("config.toml");
    fs::write(&file, "cache = '32MiB'\n[knobs]\ndirty_ratio = 11\nnfs_idle_centisecs = 3\n").unwrap();
    let control = scratch.path().join("control.sock");
    let mut command = afflux(scratch.path());
    command.env("AFFLUX_NFS_IDLE_CENTISECS", "4").env("AFFLUX_LISTEN", "127.0.0.1:0");
    // As Kubernetes sets it for a service of that name.
    command.env("AFFLUX_PORT_2049_TCP_ADDR", "10.0.0.1");
    command.arg("serve").arg(&data).arg("--json").arg("--control").arg(&control);
    command.args(["--set", "readahead_bytes_max=64KiB"]);
    let server = Server::spawn(command, control, scratch.path());
    let stat = server.stat();
    assert_eq!(stat["cache"]["cache_bytes"], 32 << 20);
    assert_eq!(stat["knobs"]["dirty_ratio"], 11);
    assert_eq!(stat["knobs"]["nfs_idle_centisecs"], 4);
    assert_eq!(stat["knobs"]["readahead_bytes_max"], 65_536);
    let ended = server.stop();
    let warned = "AFFLUX_PORT_2049_TCP_ADDR is not a setting and is ignored";
    assert!(ended.stderr.starts_with("warning: ") && ended.stderr.contains(warned), "{ended:?}");
}

#[test]
fn commands_without_a_server_say_so() {
    let scratch = Scratch::new();
    for command in [vec!["stat"], vec!["drain"], vec!["set", "dirty_ratio=20"]] {
        let socket = scratch.path().join("none.sock");
        let (code, said) = outcome(&scratch, &[&command[..], &["--control", socket.to_str().unwrap()]].concat());
        assert_eq!((code, said.contains("no server answers on")), (1, true), "{said}");
    }
}

#[test]
fn garbage_on_the_wire_ends_its_connection_and_nothing_else() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut bystander = Client::mount(&server);
    let root = bystander.root();
    let mut random = Bytes::new(3);
    for at in 0..64u32 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let length = random.number() as usize % 2_000;
        let garbage = random.vec(length);
        // Half of them look like a record, so that they get further than the first four bytes.
        let framed = at % 2 == 0;
        let mark = (0x8000_0000 | garbage.len() as u32).to_be_bytes();
        let sent = if framed { stream.write_all(&mark) } else { Ok(()) };
        let _ = sent.and_then(|()| stream.write_all(&garbage));
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let bytes = random.vec(100_000);
    bystander.write_file(&root, "f", &bytes);
    assert!(bystander.read_file(&root, "f") == bytes);
    server.stop();
}

#[test]
fn more_connections_than_there_are_descriptors_for_take_no_file_away() {
    const FILES: usize = 200;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let control = scratch.path().join("control.sock");
    let mut command = afflux(scratch.path());
    let program = command.get_program().to_owned();
    command = {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]).arg(program);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    };
    command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--json", "--cache", "32MiB", "--control"]);
    command.arg(&control);
    let server = Server::spawn(command, control, scratch.path());
    let mut greedy = Vec::new();
    // Some are accepted, some wait in the kernel, and the others would block in connect.
    for _ in 0..300 {
        greedy.push(TcpStream::connect(("127.0.0.1", server.port())).unwrap());
    }
    // A silent connection would have been evicted for them.
    let mut bystander = Client::mount(&server);
    let root = bystander.root();
    for at in 0..FILES {
        bystander.write_file(&root, &format!("f{at}"), format!("{at}").as_bytes());
    }
    for at in 0..FILES {
        assert_eq!(bystander.read_file(&root, &format!("f{at}")), format!("{at}").as_bytes());
    }
    drop(greedy);
    Client::mount(&server);
    server.stop();
}

// rule: a command whose output cannot be written fails, unless its reader is gone
#[test]
fn output_that_cannot_be_written_is_a_failure_and_a_reader_that_is_gone_is_none() {
    let scratch = Scratch::new();
    let directory = scratch.directory("served");
    let server = Server::start(scratch.path(), &[&directory], &[]);
    let commands: [&[&str]; 4] = [&["stat"], &["stat", "--json"], &["delays"], &["completions", "bash"]];
    for arguments in commands {
        let command = |output: std::process::Stdio| {
            let mut command = afflux(scratch.path());
            command.args(arguments).stdout(output).stderr(std::process::Stdio::piped());
            if arguments[0] != "completions" {
                command.arg("--control").arg(&server.control);
            }
            command.output().unwrap()
        };
        let full = command(fs::File::options().write(true).open("/dev/full").unwrap().into());
        let said = String::from_utf8_lossy(&full.stderr).into_owned();
        assert!(full.status.code() == Some(1) && said.contains("No space left"), "{arguments:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let gone = command(writer.into());
        assert!(gone.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&gone.stderr));
    }
    server.stop();
}

/// The form that `cargo install` builds.
#[cfg(not(feature = "object"))]
#[test]
fn a_build_without_stores_says_so_for_each_command_that_names_one() {
    let scratch = Scratch::new();
    let point = scratch.directory("point");
    for arguments in [&["serve", "s3://bucket/home"][..], &["mount", "s3://bucket/home", point.to_str().unwrap()]] {
        let (code, said) = outcome(&scratch, arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains("this build serves directories only") && said.contains("--features object"), "{said}");
    }
    for command in ["volumes", "check", "snapshot"] {
        let (code, said) = outcome(&scratch, &[command, "s3://bucket/home"]);
        assert_eq!(code, 2, "{command}: {said}");
    }
}

#[test]
fn a_setting_of_stores_with_a_directory_is_refused_by_name() {
    let scratch = Scratch::new();
    let directory = scratch.directory("served");
    let directory = directory.to_str().unwrap();
    for setting in [&["--follow"][..], &["--snapshot", "one"], &["--standby"], &["--take-over"]] {
        if cfg!(not(feature = "object")) {
            return afflux_scratch::skipped!("this build serves directories only");
        }
        let (code, said) = outcome(&scratch, &[&["serve", directory], setting].concat());
        assert!(code == 2 && said.contains(setting[0]) && said.contains("is a directory"), "{setting:?}: {said}");
    }
}

#[test]
fn settings_of_stores_are_judged_before_the_store_is_asked() {
    let scratch = Scratch::new();
    for (setting, said) in [
        (["--endpoint", "store:9000"], "--endpoint: 'store:9000' is no address of a server"),
        (["--snapshot", "a/b"], "--snapshot: 'a/b' is no name of a snapshot"),
        (["--disk-cache", "/tmp/parts"], "--disk-cache and --disk-cache-size go together"),
        (["--disk-cache-size", "1MiB"], "the size of a disk cache is 64 MiB to 1024 GiB"),
    ] {
        if cfg!(not(feature = "object")) {
            return afflux_scratch::skipped!("this build serves directories only");
        }
        let (code, text) = outcome(&scratch, &[&["serve", "s3://bucket/home", "--check"], &setting[..]].concat());
        assert!(code == 2 && text.contains(said), "{setting:?}: {text}");
    }
}
