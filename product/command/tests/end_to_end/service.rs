//! The server under a service supervisor: its messages, and the effect of SIGHUP.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Client;
use crate::scratch::Scratch;
use crate::server::{Server, afflux, eventually, run, text};

/// NFS3ERR_ROFS.
const READ_ONLY: u32 = 30;

/// A guard against hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The socket on which a service manager listens.
struct Supervisor(UnixDatagram);

impl Supervisor {
    fn new(scratch: &Scratch) -> Self {
        let socket = UnixDatagram::bind(scratch.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// The next message.
    fn told(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()
    }

    /// The messages up to the one with this line.
    fn told_until(&self, line: &str) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        loop {
            all.push(self.told());
            if all.last().is_some_and(|told| told.iter().any(|it| it == line)) {
                return all;
            }
        }
    }
}

/// A server with a configuration file, and the file with its output.
fn start(scratch: &Scratch, data: &Path, configuration: &str) -> Server {
    let (file, control) = (scratch.path().join("config.toml"), scratch.path().join("control.sock"));
    fs::write(
        &file,
        format!("listen = '127.0.0.1:0'\ncache = '64MiB'\ndirectories = '{}'\n{configuration}", data.display()),
    )
    .unwrap();
    let mut command = afflux(scratch.path());
    command.env("NOTIFY_SOCKET", scratch.path().join("notify")).args(["serve", "--json", "--config"]).arg(&file);
    command.arg("--control").arg(&control).stderr(fs::File::create(scratch.path().join("log")).unwrap());
    Server::spawn_logging(command, control, scratch.path())
}

/// Changes the file and has the server read it again. Returns the server's output.
fn reload(scratch: &Scratch, supervisor: &Supervisor, server: &Server, change: impl Fn(&str) -> String) -> String {
    reload_with_status(scratch, supervisor, server, change).0
}

/// The same, with the status that the service manager got.
fn reload_with_status(
    scratch: &Scratch,
    supervisor: &Supervisor,
    server: &Server,
    change: impl Fn(&str) -> String,
) -> (String, String) {
    let (file, log) = (scratch.path().join("config.toml"), scratch.path().join("log"));
    fs::write(&file, change(&fs::read_to_string(&file).unwrap())).unwrap();
    let before = fs::read_to_string(&log).unwrap().len();
    server.signal(Signal::HUP);
    let told = supervisor.told_until("READY=1");
    assert_eq!(told[0][0], "RELOADING=1", "{told:?}");
    assert!(told[0][1].starts_with("MONOTONIC_USEC="), "{told:?}");
    let status = told.last().and_then(|last| last.iter().find(|line| line.starts_with("STATUS="))).unwrap();
    (fs::read_to_string(&log).unwrap()[before..].to_owned(), status.clone())
}

#[test]
fn the_service_manager_is_told_of_the_start_the_end_and_each_reload() {
    let scratch = Scratch::new();
    let (data, supervisor) = (scratch.directory("data"), Supervisor::new(&scratch));
    let server = start(&scratch, &data, "[knobs]\ndirty_ratio = 11\n");
    let ready = supervisor.told();
    assert_eq!(ready, ["READY=1".to_owned(), format!("STATUS=Serving on 127.0.0.1:{}", server.port())]);
    let said = reload(&scratch, &supervisor, &server, str::to_owned);
    assert_eq!(said, "The configuration was read again: no setting that acts at once has changed.\n");
    server.stop();
    supervisor.told_until("STOPPING=1");
}

#[test]
fn a_reload_sets_what_the_file_names_and_says_what_waits_for_a_restart() {
    let scratch = Scratch::new();
    let (data, supervisor) = (scratch.directory("data"), Supervisor::new(&scratch));
    let server = start(
        &scratch,
        &data,
        "[knobs]\ndirty_bytes = '11MB'\ndirty_background_bytes = '5MB'\nwriteback_in_flight_ms = 30\n",
    );
    supervisor.told_until("READY=1");
    assert!(server.ask(&["set", "budget_ms=2000"]).status.success());
    assert!(server.ask(&["set", "dirty_bytes=12MB"]).status.success());
    // Both rise together: the threshold's new value is above the limit's old one.
    let said = reload(&scratch, &supervisor, &server, |text| {
        text.replace("'11MB'", "'70MB'")
            .replace("'5MB'", "'60MB'")
            .replace("writeback_in_flight_ms = 30\n", "")
            .replace("64MiB", "32MiB")
    });
    let knobs = server.stat()["knobs"].clone();
    let both = ["dirty_bytes", "dirty_background_bytes"].map(|name| knobs[name].as_u64().unwrap());
    assert_eq!(both, [70_000_000, 60_000_000], "{said}");
    assert_eq!(knobs["writeback_in_flight_ms"], 0, "the file does not name it any more: {said}");
    assert_eq!(knobs["budget_ms"], 2000, "the file never named it: {said}");
    assert!(said.contains("dirty_bytes is now 70,000,000 bytes"), "{said}");
    assert!(said.contains("note: acts at the next start only: cache\n"), "{said}");
    assert_eq!(server.stat()["cache"]["cache_bytes"], 64 << 20);
    let said = reload(&scratch, &supervisor, &server, str::to_owned);
    assert!(said.contains("no setting that acts at once has changed") && said.contains("only: cache\n"), "{said}");
    server.stop();
}

#[test]
fn a_reload_changes_what_a_client_may_do_on_the_connection_that_it_has() {
    let scratch = Scratch::new();
    let (data, supervisor) = (scratch.directory("data"), Supervisor::new(&scratch));
    let server = start(&scratch, &data, "");
    supervisor.told_until("READY=1");
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file(&root, "a", b"a");
    let said = reload(&scratch, &supervisor, &server, |text| format!("{text}read_only = true\n"));
    assert!(said.contains("read_only; answers ") && said.contains("for reading only"), "{said}");
    assert_eq!(client.read_file(&root, "a"), b"a");
    assert_eq!(client.try_write_at(&file, 0, b"b"), Err(READ_ONLY));
    reload(&scratch, &supervisor, &server, |text| text.replace("read_only = true\n", ""));
    client.write_file(&root, "b", b"b");
    server.stop();
}

#[test]
fn a_file_that_makes_no_sense_changes_nothing() {
    let scratch = Scratch::new();
    let (data, supervisor) = (scratch.directory("data"), Supervisor::new(&scratch));
    let server = start(&scratch, &data, "[knobs]\ndirty_ratio = 11\n");
    supervisor.told_until("READY=1");
    let right = fs::read_to_string(scratch.path().join("config.toml")).unwrap();
    for (from, to, why) in [
        ("= 11", "= 91", "dirty_ratio: 91 is out of range"),
        ("dirty_ratio", "dirty_rato", "(did you mean 'dirty_ratio'?)"),
        ("[knobs]", "[knobs", "TOML parse error"),
        ("[knobs]", "squash = 'some'\n[knobs]", "invalid value 'some'"),
        ("directories", "#", "no directory to serve"),
    ] {
        let (said, status) = reload_with_status(&scratch, &supervisor, &server, |_| right.replace(from, to));
        assert!(said.contains("the configuration stays as it was: ") && said.contains(why), "{said}");
        assert!(status.starts_with("STATUS=The last reload failed"), "{status}");
        // The unit runs this before it asks for a reload.
        let file = scratch.path().join("config.toml");
        let checked = run(scratch.path(), &["serve", "--check", "--config", file.to_str().unwrap()]);
        assert!(checked.status.code() == Some(2) && text(&checked).contains(why), "{}", text(&checked));
        assert_eq!(server.stat()["knobs"]["dirty_ratio"], 11);
    }
    let (_, status) = reload_with_status(&scratch, &supervisor, &server, |_| right.clone());
    assert!(status.starts_with("STATUS=Serving on"), "{status}");
    let file = scratch.path().join("config.toml");
    let mut check = afflux(scratch.path());
    check.args(["serve", "--check", "--config", file.to_str().unwrap()]);
    let checked = check.env("MAINPID", server.process().to_string()).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked));
    fs::remove_file(file).unwrap();
    server.signal(Signal::HUP);
    supervisor.told_until("READY=1");
    let log = || fs::read_to_string(scratch.path().join("log")).unwrap();
    eventually("it is said", || log().contains("cannot read the configuration file"));
    server.stop();
}
