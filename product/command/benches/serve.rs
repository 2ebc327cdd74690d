//! Measures the server as its clients see it: 1 GiB in and out in sequence, and steady loads of small calls.
//!
//! Starts `afflux serve` on a directory below the current one (or below the one given), and talks to the server over
//! loopback with one client. Prints rates, the server's CPU time and its peak memory. Before any measurement, writes
//! fill the cache once, so that no measured call touches memory for the first time. `--quick` uses 64 MiB and short
//! loads.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use afflux_nfs_client::{Client, Kind, Load, Sending, stable_how};

const MIB: usize = 1 << 20;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(directory: &PathBuf, cache: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_afflux"))
            .arg("serve")
            .arg(directory)
            .args(["--listen", "127.0.0.1:0", "--json", "--cache", cache])
            .arg("--control")
            .arg(directory.with_extension("sock"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self { port: ready["port"].as_u64().unwrap() as u16, child }
    }

    /// CPU time of all threads of the server so far. The kernel counts it in ticks of 10 ms.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn transfer(name: &str, server: &Server, bytes: usize, run: impl FnOnce()) {
    let (cpu, began) = (server.cpu(), Instant::now());
    run();
    let (cpu, took) = (server.cpu() - cpu, began.elapsed());
    println!(
        "{name:<44} {:>6.2} GB/s   server CPU {:>5.2} ns a byte",
        bytes as f64 / took.as_secs_f64() / 1e9,
        cpu.as_nanos() as f64 / bytes as f64
    );
}

fn sequential(server: &Server, client: &mut Client, root: &[u8], bytes: usize, rounds: usize) {
    let data: Vec<u8> = (0..bytes).map(|at| (at / 7 + at / 4096) as u8).collect();
    for round in 0..=rounds {
        let name = format!("sequential-{round}");
        let file = client.create_empty(root, name.as_bytes()).unwrap();
        if round == 0 {
            client.write_all(&file, 0, &data, MIB, 8).unwrap();
            client.remove(root, name.as_bytes()).unwrap();
            continue;
        }
        for (block, label) in [(MIB, "1 MiB"), (64 << 10, "64 KiB")] {
            transfer(&format!("write {label} calls, 8 in flight, and COMMIT"), server, bytes, || {
                client.write_all(&file, 0, &data, block, 8).unwrap();
            });
            transfer(&format!("read {label} calls, 8 in flight, cached"), server, bytes, || {
                let read = client.read_all(&file, 0, bytes, block, 8).unwrap();
                assert!(read == data, "the written bytes are read");
            });
        }
        client.remove(root, name.as_bytes()).unwrap();
    }
}

fn loads(server: &Server, client: &mut Client, root: &[u8], duration: Duration) {
    let file = client.create_empty(root, b"small").unwrap();
    let bytes = 256 * MIB;
    client.write_all(&file, 0, &vec![3; bytes], MIB, 8).unwrap();
    let kinds = [
        ("GETATTR", Kind::GetAttributes),
        ("READ 4 KiB", Kind::Read(4096)),
        ("WRITE 4 KiB unstable", Kind::Write(4096, stable_how::UNSTABLE)),
    ];
    for (name, kind) in kinds {
        for window in [1, 64] {
            let load = Load {
                kind,
                window,
                sending: Sending::Plain,
                file_bytes: bytes as u64,
                sequential: false,
                duration,
                seed: 1,
            };
            let cpu = server.cpu();
            let report = client.load(&file, &load).unwrap();
            let cpu = server.cpu() - cpu;
            println!(
                "{name:<22} {window:>2} in flight, cached {:>12.0} calls/s   p50 {:>7.1} µs   p99 {:>7.1} µs   server CPU {:.2} µs a call",
                report.rate(),
                report.p50_ns as f64 / 1e3,
                report.p99_ns as f64 / 1e3,
                cpu.as_micros() as f64 / report.calls as f64
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let given = arguments.iter().find(|argument| !argument.starts_with("--"));
    let place = given.map_or_else(|| std::env::current_dir().unwrap(), PathBuf::from);
    let directory = place.join(format!("afflux-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let (bytes, cache, rounds) = if quick { (64 * MIB, "512MiB", 1) } else { (1024 * MIB, "1536MiB", 3) };
    let server = Server::start(&directory, cache);
    let mut client = Client::connect(("127.0.0.1", server.port)).unwrap();
    let root = client.mount("/").unwrap();
    sequential(&server, &mut client, &root, bytes, rounds);
    let duration = Duration::from_millis(if quick { 200 } else { 2_000 });
    loads(&server, &mut client, &root, duration);
    println!("peak memory of the server: {} MiB with a cache of {cache}", server.peak_kib() / 1024);
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
}
