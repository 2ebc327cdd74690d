//! The CPUs of the race: one for the servers and for the host's own loops, another for the client.
//!
//! Owns: the choice of both; the CPU of a thread and of a process.
//! Does not own: the servers' processes (`servers`).
//! Invariants: a loop of the host runs on the servers' CPU (`a_loop_of_the_host_has_the_servers_cpu`).
//! That is the CPU that gets the disk's interrupts, if one does: a server that waits for the disk had 1.1 to 2.2 times
//! the rate there.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::disk::{self, DiskInterrupts};

/// The two CPUs, and the interrupts that the choice follows.
#[derive(Clone, Debug)]
pub(super) struct Cpus {
    servers: usize,
    client: usize,
    disk: Option<DiskInterrupts>,
}

impl Cpus {
    /// Chooses among the CPUs of this process, for the disk of a directory.
    pub(super) fn choose(directory: &Path) -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let own: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        let disk = disk::interrupts(directory)?.filter(|disk| own.contains(&disk.cpu));
        let servers = disk.as_ref().map_or(own[0], |disk| disk.cpu);
        let client = own.into_iter().find(|cpu| *cpu != servers);
        let client = client.ok_or_else(|| io::Error::other("the race needs two CPUs, one for the client"))?;
        Ok(Self { servers, client, disk })
    }

    /// A command on the servers' CPU. It execs the program, so its process number is the program's.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(self.servers.to_string()).arg(program).stdin(Stdio::null());
        command
    }

    /// Runs something of the host on the servers' CPU, in a thread of its own.
    pub(super) fn on_servers_cpu<T: Send>(&self, run: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let pinned = || {
            pin(self.servers)?;
            run()
        };
        thread::scope(|threads| threads.spawn(pinned).join()).map_err(|_| io::Error::other("a loop on the host"))?
    }

    /// Pins this thread, and all that it starts later, to the client's CPU.
    pub(super) fn pin_client(&self) -> io::Result<()> {
        pin(self.client)
    }

    /// The CPUs in a sentence above the tables.
    pub(super) fn words(&self) -> String {
        let Self { servers, client, disk } = self;
        let disk = match disk {
            Some(disk) => format!("It gets the disk's interrupts ({}).", disk.name),
            None => "No CPU was seen to get the disk's interrupts.".to_owned(),
        };
        format!("Servers and loops of the host on CPU {servers}, the client on CPU {client}. {disk}")
    }
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

#[cfg(test)]
mod tests;
