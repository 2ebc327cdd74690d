//! The machine of the exercise. It has no transport: it returns the next record of a client and takes replies in any
//! order.
//!
//! Owns: the calls in flight, the effect of an interruption on them.
//! Does not own: the draw of operations (`draw`), the valid answers about a file (`file`); connections.
//! Invariants: a call in flight belongs to one client and one file; a reply to no call in flight is a fault.

use std::collections::BTreeMap;

use afflux_nfs_client::{Answer, Call, Envelope, Error, NFS, Reply};
use afflux_reference::{ChangeId, Stamp};

use super::file::File;
use super::plan::{Fault, Plan};
use super::splitmix::Random;

/// An unanswered call.
struct Pending {
    client: usize,
    call: Call,
    record: Vec<u8>,
    file: usize,
    /// The file's generation at the time of sending.
    made: u64,
    /// The file's count of uses of names at the time of sending.
    named: u64,
    change: Option<ChangeId>,
    since: Stamp,
    /// The call was sent more than once.
    again: bool,
}

/// The machine of the exercise.
pub struct Exercise {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) root: Vec<u8>,
    envelopes: Vec<Envelope>,
    pub(super) files: Vec<File>,
    pending: BTreeMap<(usize, u32), Pending>,
    begun: u64,
    answered: u64,
    pub(super) versions: u64,
    verifier: Option<[u8; 8]>,
    /// While a listing is in flight, each file's count of uses of names at the time of sending.
    pub(super) listing: Option<Vec<u64>>,
}

impl Exercise {
    /// Operations in the directory `root`, which is empty.
    pub fn new(plan: Plan, root: &[u8]) -> Self {
        let mut random = Random::new(plan.seed);
        let envelopes = (0..plan.clients).map(|_| Envelope::new(random.next() as u32)).collect();
        let files = (0..plan.files).map(|at| File::absent(at as u64)).collect();
        Self {
            plan,
            random,
            root: root.to_vec(),
            envelopes,
            files,
            pending: BTreeMap::new(),
            begun: 0,
            answered: 0,
            versions: 0,
            verifier: None,
            listing: None,
        }
    }

    /// Operations answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether all operations are done and answered.
    pub fn is_done(&self) -> bool {
        self.begun >= self.plan.operations && self.pending.is_empty()
    }

    /// Unanswered calls of a client.
    pub fn in_flight(&self, client: usize) -> usize {
        self.pending.range((client, 0)..=(client, u32::MAX)).count()
    }

    /// The next call of a client, as a record. `None` if the client has to wait for answers, or has finished.
    pub fn next(&mut self, client: usize) -> Option<Vec<u8>> {
        const TRIES: u32 = 8;
        if self.begun >= self.plan.operations || self.in_flight(client) >= self.plan.in_flight {
            return None;
        }
        let (call, file) = (0..TRIES).find_map(|_| self.draw())?;
        self.begun += 1;
        let record = &mut self.files[file];
        if !matches!(call, Call::List { .. }) {
            record.busy += 1;
        }
        let since = record.model.look();
        let change = record.begin(&call, self.versions);
        let (xid, bytes) = self.envelopes[client].record(NFS, call.procedure().0, &call.arguments());
        let (made, named) = (self.files[file].made, self.files[file].named);
        let pending = Pending { client, call, record: bytes.clone(), file, made, named, change, since, again: false };
        self.files[file].tell(format!("sent     {xid:08x} {}", describe(&pending)));
        self.pending.insert((client, xid), pending);
        Some(bytes)
    }

    /// Takes a reply to one of a client's calls.
    pub fn reply(&mut self, client: usize, record: &[u8]) -> Result<(), Fault> {
        let Reply { xid, results } = match afflux_nfs_client::read_reply(record) {
            Ok(reply) => reply,
            Err(error) => return Err(self.fault("a reply", error.to_string())),
        };
        let Some(pending) = self.pending.remove(&(client, xid)) else {
            return Err(self.fault("a reply", format!("number {xid:#x} is of no call in flight")));
        };
        self.answered += 1;
        self.files[pending.file].rest(&pending.call);
        let (shown, file) = (describe(&pending), pending.file);
        let answer = pending.call.answer(&results);
        self.files[file].tell(format!("answered {xid:08x} {shown}"));
        self.settle(pending, answer).map_err(|what| {
            let before = self.files[file].recent_calls();
            self.fault(&shown, format!("{what}; before:\n{before}"))
        })
    }

    fn fault(&self, call: &str, what: String) -> Fault {
        Fault { operation: self.begun, call: call.to_owned(), what }
    }

    /// A client's connection is gone. Returns its calls, to be sent again over another connection.
    pub fn lost(&mut self, client: usize) -> Vec<Vec<u8>> {
        let mut again = Vec::new();
        for ((_, xid), pending) in self.pending.iter_mut().filter(|((of, _), _)| *of == client) {
            let file = &mut self.files[pending.file];
            file.tell(format!("lost     {xid:08x}"));
            // A SETATTR is executed once, however often it is sent: the answer may be that of the first sending. A
            // WRITE is executed each time.
            let run_once = matches!(pending.call, Call::SetSize { .. });
            if let Some(change) = pending.change.filter(|_| !run_once) {
                pending.change = file.begin_again(change);
            }
            pending.again = true;
            again.push(pending.record.clone());
        }
        again
    }

    /// A client has ended; its calls in flight may take effect or not. Another client replaces it.
    pub fn ended(&mut self, client: usize) {
        let xids: Vec<(usize, u32)> =
            self.pending.range((client, 0)..=(client, u32::MAX)).map(|(key, _)| *key).collect();
        for key in xids {
            let Some(pending) = self.pending.remove(&key) else { continue };
            self.files[pending.file].abandoned(&pending.call, pending.change);
            if matches!(pending.call, Call::List { .. }) {
                self.listing = None;
            }
        }
        self.envelopes[client] = Envelope::new(self.random.next() as u32);
    }

    /// The server was killed, and its memory is gone. Checks the disk's contents by name, and starts with new files.
    /// Names in use by changes may be old or new.
    pub fn killed(&mut self, mut on_disk: impl FnMut(&str) -> Option<Vec<u8>>) -> Result<(), Fault> {
        for client in 0..self.plan.clients {
            self.ended(client);
        }
        let files = std::mem::take(&mut self.files);
        for file in &files {
            let checked = file.check_crashed(&mut on_disk);
            checked.map_err(|what| self.fault("after a kill", format!("{what}; before:\n{}", file.recent_calls())))?;
        }
        let first = files.iter().map(|file| file.slot).max().unwrap_or(0) + 1;
        self.files = (0..self.plan.files as u64).map(|at| File::absent(first + at)).collect();
        (self.verifier, self.listing) = (None, None);
        Ok(())
    }

    /// The write verifier of WRITEs and COMMITs so far.
    pub fn verifier(&self) -> Option<[u8; 8]> {
        self.verifier
    }

    fn settle(&mut self, pending: Pending, answer: Result<Answer, Error>) -> Result<(), String> {
        if let Call::List { .. } = pending.call {
            let named = self.listing.take().unwrap_or_default();
            return self.listed(answer, &named);
        }
        let status = match &answer {
            Ok(_) => 0,
            Err(Error::Status { status, .. }) => *status,
            Err(error) => return Err(error.to_string()),
        };
        let file = &mut self.files[pending.file];
        if status != 0 {
            return file.failed(&pending.call, status, pending.again && self.plan.kills);
        }
        let same_names = !file.naming && file.named == pending.named;
        let answer = answer.map_err(|error| error.to_string())?;
        file.done(&pending.call, pending.change, pending.since, answer, same_names, &mut self.verifier)
    }

    fn listed(&self, answer: Result<Answer, Error>, named: &[u64]) -> Result<(), String> {
        let listing = match answer {
            Ok(Answer::Listing(listing)) => listing,
            other => return Err(format!("{other:?}")),
        };
        let dots = |name: &[u8]| name == b"." || name == b"..";
        let mut found: Vec<_> = listing
            .entries
            .iter()
            .filter(|entry| !dots(&entry.name))
            .map(|entry| (entry.name.clone(), entry.handle.clone()))
            .collect();
        found.sort();
        // A name changed meanwhile may be listed in its old or new state.
        let resting = self.files.iter().zip(named).filter(|(file, named)| !file.naming && file.named == **named);
        for (file, _) in resting {
            for name in &file.names {
                let entry = found.iter().find(|(found, _)| found == name.as_bytes());
                let right = entry.is_some_and(|(_, handle)| handle.is_none() || *handle == file.handle);
                if !right && listing.end {
                    return Err(format!("{name} is listed as {entry:?}"));
                }
            }
        }
        Ok(())
    }
}

fn describe(pending: &Pending) -> String {
    let (_, name) = pending.call.procedure();
    let detail = match &pending.call {
        Call::Read { offset, count, .. } => format!(" of {count} at {offset}"),
        Call::Write { offset, data, stability, .. } => format!(" of {} at {offset}, {stability:?}", data.len()),
        Call::SetSize { size, .. } => format!(" of size {size}"),
        _ => String::new(),
    };
    let again = if pending.again { ", sent again" } else { "" };
    format!("{name}{detail} of file {} ({}) by client {}{again}", pending.file, pending.made, pending.client)
}
