//! A server as a child process.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;

pub(crate) use afflux_scratch::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The command, without settings from the tests' own environment.
pub(crate) fn afflux(home: &Path) -> Command {
    afflux_at(Path::new(env!("CARGO_BIN_EXE_afflux")), home)
}

/// The same with a copy of the command.
pub(crate) fn afflux_at(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AFFLUX_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", home).env("XDG_RUNTIME_DIR", home).env("XDG_STATE_HOME", home).env("HOME", home);
    command.stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(home: &Path, arguments: &[&str]) -> Output {
    afflux(home).args(arguments).output().unwrap()
}

/// With these settings a server writes nothing by itself: up to 6 MiB of at most 11 files, on a disk that it does not
/// know yet.
pub(crate) const LAZY: [&str; 6] =
    ["--set", "budget_ms=60000", "--set", "dirty_background_centisecs=4500", "--set", "dirty_expire_centisecs=360000"];

pub(crate) struct Server {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<String>>,
    pub(crate) ready: Value,
    pub(crate) control: PathBuf,
    home: PathBuf,
}

/// The end of a server.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Server {
    /// Serves `directories` on a free port. Its sockets and configuration are in `home`.
    pub(crate) fn start(home: &Path, directories: &[&Path], arguments: &[&str]) -> Self {
        let control = home.join("control.sock");
        let mut command = afflux(home);
        command.arg("serve").args(directories).args(["--listen", "127.0.0.1:0", "--json"]);
        command.arg("--control").arg(&control).args(arguments);
        if !arguments.contains(&"--cache") {
            command.args(["--cache", "64MiB"]);
        }
        Self::spawn(command, control, home)
    }

    pub(crate) fn spawn(mut command: Command, control: PathBuf, home: &Path) -> Self {
        command.stderr(Stdio::piped());
        Self::spawn_logging(command, control, home)
    }

    /// As [`Server::spawn`], but with the command's own standard error.
    pub(crate) fn spawn_logging(mut command: Command, control: PathBuf, home: &Path) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = stderr.read_to_string(&mut text);
                text
            })
        });
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Ok(ready) = serde_json::from_str(&line) else {
            let _ = child.wait();
            panic!("not ready: {line:?} {:?}", stderr.map(|reader| reader.join().unwrap()));
        };
        Self { child, stdout: Some(stdout), stderr, ready, control, home: home.to_path_buf() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.ready["port"].as_u64().unwrap().try_into().unwrap()
    }

    /// The address of a path for libnfs.
    pub(crate) fn url(&self, path: &str) -> String {
        let port = self.port();
        format!("nfs://127.0.0.1{path}?nfsport={port}&mountport={port}")
    }

    /// Runs `afflux` against this server.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        let mut command = afflux(&self.home);
        command.args(arguments).arg("--control").arg(&self.control);
        command.output().unwrap()
    }

    /// The report of `afflux stat --json`.
    pub(crate) fn stat(&self) -> Value {
        let output = self.ask(&["stat", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.stat()["counters"][name].as_u64().unwrap()
    }

    /// Most memory the process has had resident, in bytes, without its program. The program's pages are locked, so they
    /// are resident until the end.
    pub(crate) fn peak_bytes_beside_program(&self) -> u64 {
        self.memory_bytes("VmHWM:") - self.memory_bytes("RssFile:")
    }

    /// Memory that the process has resident now, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.memory_bytes("VmRSS:")
    }

    /// Memory that the process has locked, in bytes.
    pub(crate) fn locked_bytes(&self) -> u64 {
        self.memory_bytes("VmLck:")
    }

    fn memory_bytes(&self, row: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(row)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Closes the pipe from its standard output.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Stops it, and waits until each of its threads stands still: a signal alone stops them a little later.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        eventually("the server stands still", || {
            fs::read_dir(&tasks).unwrap().all(|task| {
                let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('T'))
            })
        });
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let mut status = None;
        eventually("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let status = status.unwrap();
        let mut stdout = String::new();
        if let Some(mut reader) = self.stdout.take() {
            reader.read_to_string(&mut stdout).unwrap();
        }
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap()).unwrap_or_default();
        Ended { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    /// Stops it in order, and checks that everything was written.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// Like a power cut, except that the host retains the data that it already has.
    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
        assert_eq!(self.wait().signal, Some(9));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let had_ended = self.child.try_wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = self.stderr.take().map(|reader| reader.join());
            eprintln!("the server of the failed test had ended: {had_ended:?}; it said: {said:?}");
        }
    }
}

pub(crate) fn text(output: &Output) -> String {
    let join = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", join(&output.stdout), join(&output.stderr))
}

/// Runs a tool of libnfs; none, with a message, if it is not installed.
pub(crate) fn libnfs<A: AsRef<OsStr>>(tool: &str, arguments: &[A]) -> Option<Output> {
    match Command::new(tool).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) => {
            afflux_scratch::skipped!("{tool} (Debian's libnfs-utils): {error}");
            None
        }
    }
}
