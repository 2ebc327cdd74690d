//! Watching a running server: figures for Prometheus, `afflux top` as lines and on a terminal, logs with levels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afflux_scratch::within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::Client;
use crate::explaining::SlowServer;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually, run, text};

/// The server's answer for the path.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Samples by name and labels, as strictly as Prometheus reads them.
fn samples(body: &str) -> BTreeMap<String, f64> {
    let (mut kinds, mut found, mut described) = (BTreeMap::new(), BTreeMap::new(), String::new());
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            described = help.split(' ').next().unwrap().to_owned();
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(name == described && kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let parts: &[&str] = if kinds[&described] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(parts.iter().any(|part| name == format!("{described}{part}")), "{line} is below {described}");
        assert!(found.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{line} is there twice");
    }
    found
}

#[test]
fn figures_for_prometheus_are_those_of_stat() {
    let Some(slow) = SlowServer::start(&["--metrics", "127.0.0.1:0"]) else { return };
    let server = &slow.server;
    let address = server.ready["metrics"].as_str().unwrap().to_owned();
    slow.write_until_throttled(&mut Client::mount(server), "throttled");
    let answer = get(&address, "/metrics");
    let stat = server.stat();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("text/plain; version=0.0.4"), "{head}");
    let found = samples(body);
    let device = &stat["devices"][0];
    let name = device["name"].as_str().unwrap();
    for (kind, family) in [
        ("throttle", "throttle_wait"),
        ("pause", "pause"),
        ("sync", "sync_wait"),
        ("commit", "commit"),
        ("read", "read_wait"),
    ] {
        let count = device["waits"][kind]["count"].as_f64().unwrap();
        let part = |part: &str| found[&format!("afflux_device_{family}_seconds_{part}{{device=\"{name}\"}}")];
        assert_eq!(part("count"), count, "{kind}");
        let seconds = device["waits"][kind]["ns"].as_f64().unwrap() / 1e9;
        assert!((part("sum") - seconds).abs() < 1e-6, "{kind}");
        let bucket =
            |le: &str| found[&format!("afflux_device_{family}_seconds_bucket{{le=\"{le}\",device=\"{name}\"}}")];
        assert_eq!(bucket("+Inf"), count, "{kind}");
        assert!(bucket("0.001048576") <= bucket("1.073741824") && bucket("1.073741824") <= count, "{kind}");
    }
    let paused = &device["pauses"][0];
    let labels = format!("{{device=\"{name}\",cause=\"{}\"}}", paused["cause"].as_str().unwrap());
    assert_eq!(found[&format!("afflux_device_pauses_by_cause_total{labels}")], paused["count"].as_f64().unwrap());
    let commits = stat["nfs"]["calls"]["nfs_commit"].as_f64().unwrap();
    assert_eq!(found["afflux_nfs_calls_total{procedure=\"nfs_commit\"}"], commits);
    assert_eq!(found["afflux_nr_dirtied_pages_total"], stat["counters"]["nr_dirtied"].as_f64().unwrap());
    assert_eq!(found["afflux_cache_size_bytes"], f64::from(64 << 20));
    assert!(found["process_resident_memory_bytes"] > 1e6 && found["process_cpu_seconds_total"] > 0.0);
    assert!(get(&address, "/").contains("/metrics") && get(&address, "/x").starts_with("HTTP/1.1 404 "));
    checked_by_promtool(body);
    slow.server.stop();
}

/// The thread that serves figures, once it has its name.
fn thread_of_figures(server: &Server) -> Option<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process())).unwrap().map(|task| task.unwrap().path());
    let is_it = |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == "metrics");
    tasks.into_iter().find(is_it)
}

/// Number of times that a thread has run and slept again, as the kernel counts it.
fn times_run(thread: &Path) -> u64 {
    let status = fs::read_to_string(thread.join("status")).unwrap();
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:\t"));
    counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
}

#[test]
fn calls_do_nothing_for_figures_that_nobody_asks_for() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--metrics", "127.0.0.1:0"]);
    let mut found = None;
    eventually("there is a thread for it", || {
        found = thread_of_figures(&server);
        found.is_some()
    });
    let thread = found.unwrap();
    // In poll or ppoll, by their numbers on x86-64 and ARM. No client has connected, so that the thread waits for ever.
    eventually("it waits", || {
        let call = fs::read_to_string(thread.join("syscall")).unwrap();
        ["7", "271", "73"].contains(&call.split(' ').next().unwrap())
    });
    let before = times_run(&thread);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", &Bytes::new(3).vec(8 << 20));
    assert_eq!(times_run(&thread), before);
    get(server.ready["metrics"].as_str().unwrap(), "/metrics");
    assert!(times_run(&thread) > before);
    server.stop();
}

/// Prometheus' own parser accepts the text.
fn checked_by_promtool(body: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = match command.spawn() {
        Ok(checking) => checking,
        Err(error) => return afflux_scratch::skipped!("promtool (Debian's prometheus): {error}"),
    };
    checking.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let output = checking.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output).is_empty(), "{}", text(&output));
}

/// The queries of the example dashboard are valid rules for Prometheus, with Grafana's values for its variables.
#[test]
fn prometheus_understands_each_query_of_the_dashboard() {
    let scratch = Scratch::new();
    let dashboard: Value = serde_json::from_str(include_str!("../../../../docs/reference/dashboard.json")).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array());
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    for (at, target) in targets.flatten().enumerate() {
        let query = target["expr"].as_str().unwrap().replace("$instance", ".*").replace("$device", "sda|sdb");
        let query = query.replace("$__rate_interval", "1m").replace('\'', "''");
        assert!(!query.contains('$'), "{query}");
        rules.push_str(&format!("  - record: afflux:query:{at}\n    expr: '{query}'\n"));
    }
    let path = scratch.path().join("rules.yml");
    fs::write(&path, rules).unwrap();
    match Command::new("promtool").args(["check", "rules"]).arg(&path).output() {
        Ok(output) => assert!(output.status.success(), "{}", text(&output)),
        Err(error) => afflux_scratch::skipped!("promtool (Debian's prometheus): {error}"),
    }
}

#[test]
fn a_governor_gives_figures_of_its_disks() {
    let tree = crate::govern::Tree::new();
    let mut child =
        tree.command(&["--metrics", "127.0.0.1:0"]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    while !said.contains("/metrics\n") {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let address = said.split_once("http://").unwrap().1.trim_end_matches("/metrics\n").to_owned();
    let answer = || get(&address, "/metrics").split_once("\r\n\r\n").unwrap().1.to_owned();
    eventually("the disk is told", || answer().contains("afflux_govern_limit_bytes{"));
    let body = answer();
    let found = samples(&body);
    assert_eq!(found["afflux_govern_budget_seconds{device=\"sdb\",model=\"Stick\"}"], 1.0);
    assert!(found["afflux_govern_events_total{event=\"limited\"}"] >= 1.0);
    checked_by_promtool(&body);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

// rule: 1: a page counts as a hit if it was there when its call came, and each page of a read counts once
#[test]
fn hits_are_the_pages_that_were_cached_when_their_call_came() {
    const FILE_BYTES: u64 = 256 << 20;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    File::create(data.join("large")).unwrap().set_len(FILE_BYTES).unwrap();
    let server = Server::start(scratch.path(), &[&data], &["--cache", "32MiB", "--metrics", "127.0.0.1:0"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.lookup(&root, "large");
    let (block, calls, mut random) = (32 << 10, 4_000, 1_u64);
    for _ in 0..calls {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (random >> 33) % (FILE_BYTES / block);
        assert_eq!(client.read_at(&file, number * block, block as usize).len() as u64, block);
    }
    let counters = &server.stat()["counters"];
    let [hits, misses] = ["read_hit_pages", "read_miss_pages"].map(|name| counters[name].as_u64().unwrap());
    assert_eq!(hits + misses, calls * block / 4096, "each page of each call is counted once");
    let per_mille = hits * 1000 / (hits + misses);
    // An eighth of the file is in the cache.
    assert!((60..=160).contains(&per_mille), "{per_mille} of 1,000 pages were there");
    let answer = get(server.ready["metrics"].as_str().unwrap(), "/metrics");
    let shown = samples(answer.split_once("\r\n\r\n").unwrap().1);
    assert_eq!(shown["afflux_read_hit_pages_total"], hits as f64);
    assert_eq!(shown["afflux_read_miss_pages_total"], misses as f64);
    server.stop();
}

#[test]
fn an_address_that_cannot_be_listened_on_is_told_before_anything_is_served() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = |metrics: &str| {
        let data = data.to_str().unwrap();
        run(scratch.path(), &["serve", data, "--listen", "127.0.0.1:0", "--cache", "64MiB", "--metrics", metrics])
    };
    let output = serve(&address);
    let said = text(&output);
    let holder = format!("error: --metrics: {address} is in use by another program (");
    assert!(output.status.code() == Some(1) && said.starts_with(&holder), "{said}");
    assert!(said.contains(&format!("process {}", std::process::id())) && output.stdout.is_empty(), "{said}");
    for (nonsense, code, word) in [
        ("9464", 2, "such as 127.0.0.1:9464"),
        ("127.0.0.1:70000", 2, "0 to 65535"),
        ("192.0.2.1:9464", 1, "is not an address of this machine"),
    ] {
        let output = serve(nonsense);
        let said = text(&output);
        assert!(output.status.code() == Some(code) && said.contains("--metrics") && said.contains(word), "{said}");
    }
    let tree = crate::govern::Tree::new();
    let output = tree.output(&["--metrics", &address]);
    assert!(output.status.code() == Some(1) && text(&output).contains("is in use"), "{}", text(&output));
    assert!(tree.is_untouched());
}

#[test]
fn top_tells_devices_clients_and_files_as_lines_and_as_json() {
    let Some(slow) = SlowServer::start(&[]) else { return };
    let server = &slow.server;
    let told = |arguments: &[&str]| {
        let writing = Writing::start(server);
        let output = server.ask(&[&["top", "--once"], arguments].concat());
        writing.stop();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    let lines = told(&[]);
    for begins in ["device ", "client ", "file ", " longest", &name, "127.0.0.1 "] {
        assert!(lines.lines().any(|line| line.starts_with(begins)), "{begins:?} in {lines}");
    }
    assert!(lines.contains("/written") && !lines.contains('\x1b'), "{lines}");
    let rows: Value = serde_json::from_str(&told(&["--json"])).unwrap();
    assert!(rows["devices"][0]["written_bytes_per_s"].as_u64().unwrap() > 0, "{rows}");
    let client = &rows["clients"][0];
    assert_eq!(client["name"], "127.0.0.1");
    assert!(client["received_bytes_per_s"].as_u64().unwrap() > 0, "{rows}");
    assert!(client["waited"]["throttle_ns_per_s"].as_u64().unwrap() > 0, "{rows}");
    let files: BTreeSet<&str> =
        rows["files"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(files, [slow.data.join("written").to_str().unwrap()].into(), "{rows}");
    let wait = &rows["waits"][0];
    assert!(wait["longest_ns"].as_u64().unwrap() > 0 && wait["device"] == name.as_str(), "{rows}");
    slow.server.stop();
}

/// A client that writes until it is ordered to stop.
struct Writing {
    ends: Arc<std::sync::atomic::AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Writing {
    fn start(server: &Server) -> Self {
        let mut client = Client::mount(server);
        let root = client.root();
        let ends = Arc::<std::sync::atomic::AtomicBool>::default();
        let told = Arc::clone(&ends);
        let file = client.create(&root, "written");
        let thread = std::thread::spawn(move || {
            let bytes = Bytes::new(5).vec(8 << 20);
            for turn in 0.. {
                client.write_at(&file, (turn % 2) << 23, &bytes);
                if told.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
            }
        });
        Self { ends, thread }
    }

    fn stop(self) {
        self.ends.store(true, std::sync::atomic::Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

/// `afflux top` on a terminal of its own.
struct OnTerminal {
    script: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
    terminal: PathBuf,
    process: PathBuf,
}

impl OnTerminal {
    fn start(server: &Server, scratch: &Path, columns: u32, rows: u32) -> Option<Self> {
        let (terminal, process) = (scratch.join("terminal"), scratch.join("process"));
        let _ = fs::remove_file(&process);
        let program = env!("CARGO_BIN_EXE_afflux");
        let inside = format!(
            "stty cols {columns} rows {rows}; tty > {}; echo $$ > {}; exec {program} top --control {}",
            terminal.display(),
            process.display(),
            server.control.display()
        );
        let mut command = afflux(scratch);
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("script");
        for (name, value) in environment {
            value.map(|value| command.env(name, value));
        }
        command.args(["-q", "-e", "-f", "-c", &inside, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        let mut script = match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(script) => script,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                afflux_scratch::skipped!("script (Debian's bsdutils): {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let (keys, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let shown = Arc::<Mutex<String>>::default();
        let keeping = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                keeping.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Some(Self { script, keys, shown, terminal, process })
    }

    /// Waits for words on the screen that appeared since the last call.
    fn shows(&self, words: &str) {
        eventually(words, || {
            let mut shown = self.shown.lock().unwrap();
            let Some(at) = shown.find(words) else { return false };
            shown.drain(..at + words.len());
            true
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for a word at this size, or at one more column. After a change of size all words are drawn again;
    /// otherwise only changed letters are. A key may also take effect after the change of size.
    fn shows_at(&self, columns: u32, rows: u32, word: &str) {
        let mut more = 0;
        eventually(word, || {
            more = 1 - more;
            self.resize(columns + more, rows);
            within(Duration::from_millis(100), || self.shown.lock().unwrap().contains(word))
        });
        self.shown.lock().unwrap().clear();
    }

    fn resize(&self, columns: u32, rows: u32) {
        let terminal = fs::read_to_string(&self.terminal).unwrap();
        let size = [columns.to_string(), rows.to_string()];
        let stty = Command::new("stty").args(["-F", terminal.trim(), "cols", &size[0], "rows", &size[1]]).status();
        assert!(stty.unwrap().success());
    }

    fn ends(mut self) {
        eventually("the terminal is as before", || {
            within(Duration::from_millis(100), || self.shown.lock().unwrap().contains("\x1b[?1049l"))
        });
        assert_eq!(self.script.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn top_has_a_screen_that_follows_keys_and_sizes_and_gives_the_terminal_back() {
    let Some(slow) = SlowServer::start(&[]) else { return };
    let (server, home) = (&slow.server, slow.scratch.path());
    let writing = Writing::start(server);
    let Some(mut top) = OnTerminal::start(server, home, 100, 24) else { return writing.stop() };
    top.shows("\x1b[?1049h");
    top.shows("/written");
    // Some rows must be there first, so that the sort order is known.
    top.press("s");
    top.shows_at(20, 5, "(wait");
    top.resize(1, 1);
    top.shows_at(110, 30, "(waits)");
    top.press("/nothing has this\r");
    top.shows_at(100, 24, "/nothing");
    top.press("\x1b");
    top.press("p");
    top.shows_at(110, 30, "held");
    top.press("q");
    top.ends();
    // It ends when its terminal closes.
    let mut top = OnTerminal::start(server, home, 80, 24).unwrap();
    top.shows("device");
    let process = fs::read_to_string(&top.process).unwrap();
    top.script.kill().unwrap();
    top.script.wait().unwrap();
    eventually("it has ended", || !Path::new("/proc").join(process.trim()).join("exe").exists());
    // A signal also restores the terminal.
    let top = OnTerminal::start(server, home, 20, 5).unwrap();
    top.shows("device");
    let process = fs::read_to_string(&top.process).unwrap();
    kill_process(Pid::from_raw(process.trim().parse().unwrap()).unwrap(), Signal::TERM).unwrap();
    top.ends();
    writing.stop();
    slow.server.stop();
}

#[test]
fn top_ends_when_its_server_does_and_says_why() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let output = run(scratch.path(), &["top", "--once"]);
    assert!(output.status.code() == Some(1) && text(&output).contains("serve"), "{}", text(&output));
    let server = Server::start(scratch.path(), &[&data], &[]);
    let Some(top) = OnTerminal::start(&server, scratch.path(), 80, 24) else { return };
    top.shows("device");
    server.kill();
    top.shows("\x1b[?1049l");
    top.shows("error: the server on ");
    let OnTerminal { mut script, .. } = top;
    assert_eq!(script.wait().unwrap().code(), Some(1));
}

/// A server whose standard error is the file `log`.
pub(crate) fn logging(scratch: &Scratch, data: &Path, journal: bool, arguments: &[&str]) -> Server {
    let control = scratch.path().join("control.sock");
    let log = File::create(scratch.path().join("log")).unwrap();
    let mut command = afflux(scratch.path());
    command.arg("serve").arg(data).args(["--listen", "127.0.0.1:0", "--json", "--cache", "64MiB", "--control"]);
    command.arg(&control).args(arguments);
    if journal {
        let numbers = log.metadata().unwrap();
        command.env("JOURNAL_STREAM", format!("{}:{}", numbers.dev(), numbers.ino()));
    } else {
        command.env_remove("JOURNAL_STREAM");
    }
    command.stderr(log);
    Server::spawn_logging(command, control, scratch.path())
}

/// The lines that a server logs for a changed knob, on a standard error that is a file.
fn logged(journal: bool, arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let path = scratch.path().join("log");
    let server = logging(&scratch, &data, journal, arguments);
    assert!(server.ask(&["set", "dirty_ratio=20"]).status.success());
    server.stop();
    fs::read_to_string(path).unwrap()
}

#[test]
fn what_is_logged_has_a_level_a_time_in_a_file_and_a_priority_in_the_journal() {
    const SAID: &str = "dirty_ratio is now 20 percent for all devices\n";
    let log = logged(false, &[]);
    let line = log.split_inclusive('\n').find(|line| line.ends_with(SAID)).unwrap();
    assert!(line.starts_with("20") && line.ends_with(&format!("Z note: {SAID}")), "{log}");
    let log = logged(true, &[]);
    assert!(log.contains(&format!("<6>{SAID}")), "{log}");
    for level in ["warn", "off"] {
        assert!(!logged(false, &["--log", level]).contains("dirty_ratio"), "{level}");
    }
    assert!(logged(false, &["--log", "debug"]).contains(" debug: "));
}
