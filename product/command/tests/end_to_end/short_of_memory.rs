//! The server on a host that is short of memory: the server is part of the reclaim of its own host's clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use afflux_scratch::within;
use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually};

const CACHE_BYTES: u64 = 32 << 20;
/// The group's limit: the cache, the server's other memory, and little for the other programs.
const GROUP_BYTES: u64 = 80 << 20;

/// A control group with a memory limit, and programs in it that always want more than the limit.
struct Group {
    path: PathBuf,
    others: Vec<Child>,
}

impl Group {
    /// None if the host has no such groups, or this user may not make them.
    fn new(name: &str) -> Option<Self> {
        let path = Path::new("/sys/fs/cgroup/memory").join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self { path, others: Vec::new() };
        fs::write(group.path.join("memory.limit_in_bytes"), GROUP_BYTES.to_string()).ok()?;
        Some(group)
    }

    /// A command that runs in the group.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.path.join("cgroup.procs")).arg(program);
        command
    }

    /// Runs a script. When the group's memory runs out, the kernel ends such programs before the server.
    fn runs(&mut self, script: &str, argument: &Path) {
        let mut command = self.command("sh");
        command.args(["-c", &format!("echo 1000 > /proc/self/oom_score_adj; {script}"), "sh"]).arg(argument);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.others.push(command.spawn().unwrap());
    }

    /// Takes all but a few MiB of the group's memory, and reads and writes far more than fits there, again and again,
    /// so that the kernel reclaims other programs' memory.
    fn gets_short(&mut self, folder: &Path) {
        self.runs("while :; do head -c 14m /dev/zero | tail -c 14m | sleep 100; done", folder);
        self.runs("cd \"$1\"; while :; do dd if=/dev/zero of=churn bs=1M count=128; cat churn; done", folder);
    }

    fn reclaims(&self) -> u64 {
        let failed = fs::read_to_string(self.path.join("memory.failcnt")).unwrap();
        failed.trim().parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let left = || fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        // The shells and the programs that they started. A shell may start another one meanwhile.
        within(Duration::from_secs(5), || {
            let left = left();
            for process in left.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)) {
                let _ = kill_process(process, Signal::KILL);
            }
            // A wait for a shell that lives on would have no end.
            self.others.retain_mut(|other| !matches!(other.try_wait(), Ok(Some(_))));
            left.is_empty()
        });
        let _ = fs::remove_dir(&self.path);
    }
}

/// Number of times that the server has waited for a page of its program or its data to be read from a disk.
fn major_faults(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.process())).unwrap();
    let after_name = &stat[stat.rfind(')').unwrap() + 2..];
    after_name.split(' ').nth(9).unwrap().parse().unwrap()
}

/// Writes, commits and reads while the group has no memory to spare. Returns the number of times that the server had to
/// wait for its own pages.
fn faults_under_pressure(lock_memory: &str) -> Option<u64> {
    let scratch = Scratch::new();
    let (data, beside) = (scratch.directory("data"), scratch.directory("beside"));
    let mut group = Group::new(&format!("afflux-short-of-memory-{lock_memory}"))?;
    let control = scratch.path().join("control.sock");
    let served = afflux(scratch.path());
    // A copy made in the group, so that its pages count for the group.
    let program = beside.join("afflux");
    assert!(group.command("cp").arg(served.get_program()).arg(&program).status().unwrap().success());
    let mut command = group.command(program.to_str().unwrap());
    command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--json", "--cache", "32MiB"]);
    command.arg("--control").arg(&control).args(["--lock-memory", lock_memory]).stdin(Stdio::null());
    let server = Server::spawn(command, control, scratch.path());
    let mut client = Client::mount(&server);
    let root = client.root();
    let mut round = |number: u64| {
        let name = format!("file-{number}");
        let bytes = Bytes::new(number).vec(3 << 20);
        let file = client.write_file(&root, &name, &bytes);
        assert!(client.read(&file, bytes.len()) == bytes);
        client.remove(&root, &name);
    };
    // From here on the server has used all memory that it needs.
    (0..20).for_each(&mut round);
    group.gets_short(&beside);
    eventually("the group is short of memory", || group.reclaims() > 100);
    let before = major_faults(&server);
    (20..60).for_each(&mut round);
    let faults = major_faults(&server) - before;
    assert!(server.resident_bytes() > CACHE_BYTES, "nobody took its memory away");
    server.stop();
    Some(faults)
}

#[test]
fn short_of_memory_the_server_answers_and_never_waits_for_its_own_pages() {
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root is sure to be allowed to lock memory, and to bound it");
        return;
    }
    let Some(faults) = faults_under_pressure("on") else {
        afflux_scratch::skipped!("no control groups that bound memory");
        return;
    };
    // Code that runs for the first time is read once. Without locked memory there are thousands of faults.
    assert!(faults <= 32, "{faults} pages of the server were taken away and read again");
}
