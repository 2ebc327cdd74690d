//! The kernel's figures of processes, and their CPUs.
//!
//! Owns: CPU time and context switches of processes, the CPU that this process keeps to.
//! Does not own: the processes.
//! Invariants: none.

use std::fs;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The use that processes made of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_ns: u64,
    pub(crate) switches: u64,
}

impl Usage {
    /// Of all threads of a process. A thread that ends meanwhile has no file any more.
    pub(crate) fn of(process: u32) -> Self {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Self::default() };
        tasks.flatten().fold(Self::default(), |sum, task| {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let cpu_ns = read("schedstat").split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
            let switches: u64 = read("status").lines().filter_map(switches_of_line).sum();
            Self { cpu_ns: sum.cpu_ns + cpu_ns, switches: sum.switches + switches }
        })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns + other.cpu_ns, switches: self.switches + other.switches }
    }
}

fn switches_of_line(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(':')?;
    key.ends_with("_ctxt_switches").then(|| value.trim().parse().ok())?
}

/// Keeps the calling thread, and all its later threads and processes, on one CPU.
pub(crate) fn keep_to(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs of the calling thread.
pub(crate) fn cpus() -> io::Result<CpuSet> {
    Ok(sched_getaffinity(None)?)
}

/// Gives the calling thread these CPUs again.
pub(crate) fn use_cpus(set: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(None, set)?)
}

#[cfg(test)]
mod tests;
