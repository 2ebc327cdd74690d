//! The use that processes make of the machine.
//!
//! Owns: processor time and context switches of a process.
//! Does not own: the processes.
//! Invariants: a thread that ends meanwhile counts as nothing.

use std::fs;

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

fn switches_of_line(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(':')?;
    key.ends_with("_ctxt_switches").then(|| value.trim().parse().ok())?
}

#[cfg(test)]
mod tests;
