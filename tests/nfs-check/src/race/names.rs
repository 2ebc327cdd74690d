//! Calls about names, by one client or several.
//!
//! Owns: the steps, their order, one thread's wait for several connections.
//! Does not own: the directories on the host.
//! Invariants: each client has one call in flight and its own directory; the steps of a round run in order, so that
//! each finds the result of the step before.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use afflux_nfs_client::{Call, Change, Client, Handle, NFS, read_reply};
use afflux_rig::Measurement;
use rustix::event::{PollFd, PollFlags, poll};

use super::figure::Figure;
use super::servers::{Called, Running, Servers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Mode,
    Rename,
    Remove,
}

struct Worker {
    client: Client,
    directory: Handle,
    handles: Vec<Handle>,
    at: u64,
}

impl Worker {
    fn call(&self, step: Step) -> Call {
        let name = |prefix: &str| format!("{prefix}{}", self.at).into_bytes();
        let directory = self.directory.clone();
        match step {
            Step::Create => Call::Create { directory, name: name("n") },
            Step::Mode => Call::SetMode { object: self.handles[self.at as usize].clone(), mode: 0o600 },
            Step::Rename => Call::Rename { from: (directory.clone(), name("n")), to: (directory, name("r")) },
            Step::Remove => Call::Remove { directory, name: name("r") },
        }
    }

    fn send(&mut self, step: Step) -> Result<(), afflux_nfs_client::Error> {
        let call = self.call(step);
        self.client.send(NFS, call.procedure().0, &call.arguments())?;
        Ok(())
    }

    fn receive(&mut self, step: Step) -> Result<(), afflux_nfs_client::Error> {
        let reply = read_reply(&self.client.receive_raw()?)?;
        self.call(step).answer(&reply.results)?;
        self.at += 1;
        Ok(())
    }
}

/// One step: `names` calls in all.
pub(super) fn run(
    servers: &mut Servers,
    which: Running,
    step: Step,
    clients: usize,
    names: u64,
    round: usize,
) -> Called<Figure> {
    let each = names / clients as u64 * if clients > 1 { 4 } else { 1 };
    let mut workers = Vec::new();
    for at in 0..clients {
        workers.push(worker(servers, which, &format!("names-{}-{clients}-{round}-{at}", which.word()), step, each)?);
    }
    let begun = Measurement::begin([servers.process(which)]);
    for worker in &mut workers {
        worker.send(step)?;
    }
    let total = each * clients as u64;
    let mut done = 0;
    while done < total {
        let ready: Vec<bool> = {
            let mut waits: Vec<PollFd<'_>> =
                workers.iter().map(|worker| PollFd::new(worker.client.socket(), PollFlags::IN)).collect();
            poll(&mut waits, None).map_err(io::Error::from)?;
            waits.iter().map(|wait| !wait.revents().is_empty()).collect()
        };
        for (worker, _) in workers.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            worker.receive(step)?;
            done += 1;
            if worker.at < each {
                worker.send(step)?;
            }
        }
    }
    Ok(Figure::of(begun, total, total))
}

fn worker(
    servers: &mut Servers,
    which: Running,
    name: &str,
    step: Step,
    each: u64,
) -> Result<Worker, afflux_nfs_client::Error> {
    let (mut client, root) = servers.connect(which)?;
    if step == Step::Create {
        client.mkdir(&root, name.as_bytes(), Change { mode: Some(0o755), ..Change::default() })?;
    }
    let (directory, _) = client.lookup(&root, name.as_bytes())?;
    let mut handles = Vec::new();
    if step == Step::Mode {
        for at in 0..each {
            handles.push(client.lookup(&directory, format!("n{at}").as_bytes())?.0);
        }
    }
    Ok(Worker { client, directory, handles, at: 0 })
}

/// The same on the host; a sync of the file or directory makes each change durable. Returns the number of changes and
/// their time.
pub(super) fn run_on_host(export: &Path, step: Step, names: u64, round: usize) -> io::Result<(u64, Duration)> {
    let path = export.join(format!("names-host-{round}"));
    if step == Step::Create {
        fs::create_dir(&path)?;
    }
    let directory = File::open(&path)?;
    let begin = Instant::now();
    for at in 0..names {
        let (name, renamed) = (path.join(format!("n{at}")), path.join(format!("r{at}")));
        match step {
            Step::Create => drop(File::create_new(&name)?),
            Step::Mode => {
                let file = File::open(&name)?;
                file.set_permissions(fs::Permissions::from_mode(0o600))?;
                file.sync_all()?;
                continue;
            }
            Step::Rename => fs::rename(&name, &renamed)?,
            Step::Remove => fs::remove_file(&renamed)?,
        }
        directory.sync_all()?;
    }
    Ok((names, begin.elapsed()))
}
