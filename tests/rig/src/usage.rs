//! The use that processes make of the machine.
//!
//! Owns: processor time and context switches of a process, their measurement.
//! Does not own: the processes.
//! Invariants: a thread that ends meanwhile counts as nothing.

use std::fs;
use std::time::{Duration, Instant};

/// Processor time and context switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time.
    pub cpu_ns: u64,
    /// Context switches.
    pub switches: u64,
}

impl Usage {
    /// Of all threads of a process.
    pub fn of(process: u32) -> Self {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Self::default() };
        tasks.flatten().fold(Self::default(), |sum, task| {
            // A thread that ends meanwhile has no file any more.
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let cpu_ns = read("schedstat").split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
            let switches = read("status").lines().filter_map(switches_of_line).sum();
            sum.plus(Self { cpu_ns, switches })
        })
    }

    fn of_all(processes: &[u32]) -> Self {
        processes.iter().fold(Self::default(), |sum, process| sum.plus(Self::of(*process)))
    }

    /// The use since an earlier look.
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }

    /// Both.
    pub fn plus(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns + other.cpu_ns, switches: self.switches + other.switches }
    }
}

/// A measurement that has begun: its time, and the use before of this process and of servers.
pub struct Measurement {
    servers: Vec<u32>,
    before: [Usage; 2],
    begin: Instant,
}

impl Measurement {
    /// Begins, beside servers that have these processes.
    pub fn begin(servers: impl IntoIterator<Item = u32>) -> Self {
        let servers: Vec<u32> = servers.into_iter().collect();
        let before = [Usage::of(std::process::id()), Usage::of_all(&servers)];
        Self { servers, before, begin: Instant::now() }
    }

    /// The time since its beginning, and the use of the machine by this process and by the servers.
    pub fn end(self) -> (Duration, [Usage; 2]) {
        let elapsed = self.begin.elapsed();
        let now = [Usage::of(std::process::id()), Usage::of_all(&self.servers)];
        (elapsed, [0, 1].map(|at| now[at].since(self.before[at])))
    }
}

fn switches_of_line(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(':')?;
    key.ends_with("_ctxt_switches").then(|| value.trim().parse().ok())?
}

#[cfg(test)]
mod tests;
