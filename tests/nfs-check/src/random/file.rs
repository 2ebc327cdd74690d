//! A file of the exercise, with names, handle and model.
//!
//! Owns: the valid answers, and their effect on the model.
//! Does not own: calls in flight.
//! Invariants: while a name is in use, no other call uses one of this file's names.

use std::collections::VecDeque;

use afflux_nfs_client::status::{EXIST, NOENT, STALE};
use afflux_nfs_client::{Answer, Call, Consistency, stable_how};
use afflux_reference::{ChangeId, Ending, FileModel, Stamp};

/// A fault is reported with this many of its file's latest events.
const RECENT_CALLS_MAX: usize = 200;

pub(super) struct File {
    /// Distinguishes its names from those of other files.
    pub(super) slot: u64,
    /// The number of files that this slot has had.
    pub(super) made: u64,
    renamed: u64,
    pub(super) handle: Option<Vec<u8>>,
    pub(super) names: Vec<String>,
    pub(super) model: FileModel,
    pub(super) changes: u32,
    /// Calls in flight for it.
    pub(super) busy: u32,
    /// One of these calls uses a name.
    pub(super) naming: bool,
    /// Incremented when a call begins to use a name, and when the call ends.
    pub(super) named: u64,
    /// The effects of the changes in flight.
    ranges: Vec<(ChangeId, StartedCall)>,
    /// Changes that may still take effect at any time.
    pub(super) abandoned: u32,
    /// The latest events, for the report of a fault.
    recent_calls: VecDeque<String>,
}

#[derive(Clone, Copy)]
enum StartedCall {
    Write { offset: u64, len: u64, version: u64 },
    Size(u64),
}

impl File {
    pub(super) fn absent(slot: u64) -> Self {
        Self {
            slot,
            made: 0,
            renamed: 0,
            handle: None,
            names: Vec::new(),
            model: FileModel::new(0, 0),
            changes: 0,
            busy: 0,
            naming: false,
            named: 0,
            ranges: Vec::new(),
            abandoned: 0,
            recent_calls: VecDeque::new(),
        }
    }

    pub(super) fn new_name(&mut self) -> String {
        self.renamed += 1;
        format!("file-{}-{}", self.slot, self.renamed)
    }

    /// Begins the change of a call; a WRITE's bytes are of pattern `version`.
    pub(super) fn begin(&mut self, call: &Call, version: u64) -> Option<ChangeId> {
        let begun = match call {
            Call::Write { offset, data, .. } => StartedCall::Write { offset: *offset, len: data.len() as u64, version },
            Call::SetSize { size, .. } => StartedCall::Size(*size),
            _ => return None,
        };
        self.changes += 1;
        Some(self.begin_change(begun))
    }

    fn begin_change(&mut self, begun: StartedCall) -> ChangeId {
        let change = match begun {
            StartedCall::Write { offset, len, version } => self.model.begin_write(offset, len, version),
            StartedCall::Size(size) => self.model.begin_set_size(size),
        };
        self.ranges.push((change, begun));
        change
    }

    pub(super) fn tell(&mut self, what: String) {
        if self.recent_calls.len() == RECENT_CALLS_MAX {
            self.recent_calls.pop_front();
        }
        self.recent_calls.push_back(what);
    }

    pub(super) fn recent_calls(&self) -> String {
        self.recent_calls.iter().map(|line| format!("  {line}\n")).collect()
    }

    /// Repeats a change; the first attempt may still take effect at any later time.
    pub(super) fn begin_again(&mut self, first: ChangeId) -> Option<ChangeId> {
        self.model.end(first, Ending::Abandoned);
        let at = self.ranges.iter().position(|(change, _)| *change == first)?;
        let (_, begun) = self.ranges.swap_remove(at);
        self.changes += 1;
        self.abandoned += 1;
        Some(self.begin_change(begun))
    }

    fn end(&mut self, change: Option<ChangeId>, ending: Ending) {
        if let Some(change) = change {
            self.model.end(change, ending);
            self.ranges.retain(|(begun, _)| *begun != change);
        }
    }

    /// A call is no longer in flight.
    pub(super) fn rest(&mut self, call: &Call) {
        if matches!(call, Call::List { .. }) {
            return;
        }
        self.busy -= 1;
        if uses_name(call) {
            self.naming = false;
            self.named += 1;
        }
    }

    /// A call begins to use one of its names.
    pub(super) fn use_name(&mut self) {
        self.naming = true;
        self.named += 1;
    }

    /// The client of this call has ended.
    pub(super) fn abandoned(&mut self, call: &Call, change: Option<ChangeId>) {
        self.rest(call);
        self.abandoned += u32::from(change.is_some());
        self.end(change, Ending::Abandoned);
        let lasting = !matches!(call, Call::Lookup { .. });
        if uses_name(call) && lasting {
            // The file counts as removed and is never checked again; no other file has its names.
            self.forget();
        }
    }

    /// The file's names are unknown: it is never checked again. Calls in flight for it are still answered.
    fn forget(&mut self) {
        self.handle = None;
        self.names.clear();
        self.made += 1;
        self.named += 1;
    }

    /// A call failed. `repeated`: it may have succeeded before the server lost its memory of that.
    pub(super) fn failed(&mut self, call: &Call, status: u32, repeated: bool) -> Result<(), String> {
        match (call, status) {
            (Call::Remove { .. } | Call::Rename { .. }, NOENT) | (Call::Create { .. } | Call::Link { .. }, EXIST)
                if repeated =>
            {
                self.forget();
                Ok(())
            }
            (_, STALE) if self.handle.is_none() => Ok(()),
            _ => Err(format!("status {status}")),
        }
    }

    /// A call succeeded. `same_names`: no other call used the file's names meanwhile.
    pub(super) fn done(
        &mut self,
        call: &Call,
        change: Option<ChangeId>,
        since: Stamp,
        answer: Answer,
        same_names: bool,
        verifier: &mut Option<[u8; 8]>,
    ) -> Result<(), String> {
        match (call, answer) {
            (Call::Write { data, stability, .. }, Answer::Written(written)) => {
                if written.count as usize > data.len() || written.count == 0 {
                    return Err(format!("{} bytes written of {}", written.count, data.len()));
                }
                let whole = written.count as usize == data.len();
                self.end(change, if whole { Ending::Done } else { Ending::Failed });
                same_verifier(verifier, written.verf.0)?;
                if (written.committed as u32) < *stability as u32 {
                    return Err(format!("{:?} answered", written.committed));
                }
                self.check_after(since, written.file_wcc)?;
                if let Some(change) = change.filter(|_| written.committed != stable_how::UNSTABLE && whole) {
                    self.model.note_stable(change);
                }
                Ok(())
            }
            (Call::SetSize { .. }, Answer::Changed(consistency)) => {
                self.end(change, Ending::Done);
                self.check_after(since, consistency)
            }
            (Call::Read { offset, count, .. }, Answer::Read(read)) => {
                let checked = self.model.check_read(since, *offset, (*count).into(), &read.data);
                checked.map_err(|mismatch| mismatch.what)
            }
            (Call::Commit { .. }, Answer::Committed(committed)) => {
                same_verifier(verifier, committed.verf.0)?;
                self.model.note_synced(since, 0, u64::MAX);
                self.check_after(since, committed.file_wcc)
            }
            (Call::GetAttributes { .. }, Answer::Attributes(found)) => {
                if same_names && found.nlink as usize != self.names.len() {
                    return Err(format!("{} links; its names are {:?}", found.nlink, self.names));
                }
                self.model.check_size(since, found.size).map_err(|mismatch| mismatch.what)
            }
            (Call::SetMode { .. }, Answer::Changed(consistency)) => self.check_after(since, consistency),
            (call, answer) => self.named(call, answer),
        }
    }

    /// Handles the answers of calls that use names.
    fn named(&mut self, call: &Call, answer: Answer) -> Result<(), String> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        match (call, answer) {
            (Call::Create { name, .. }, Answer::Made(made)) => {
                let handle = made.handle.ok_or("CREATE without a handle")?;
                self.made += 1;
                (self.handle, self.names, self.changes, self.abandoned) = (Some(handle), vec![text(name)], 0, 0);
                (self.model, self.ranges) = (FileModel::new(0, 0), Vec::new());
            }
            (Call::Lookup { .. }, Answer::Found(handle)) => {
                if self.handle.as_ref() != Some(&handle) {
                    return Err("another handle than CREATE gave".to_owned());
                }
            }
            (Call::Rename { to, .. }, Answer::Renamed(..)) => {
                self.names.pop();
                self.names.push(text(&to.1));
            }
            (Call::Link { name, .. }, Answer::Linked(..)) => self.names.push(text(name)),
            (Call::Remove { .. }, Answer::Changed(_)) => {
                self.names.pop();
                if self.names.is_empty() {
                    self.handle = None;
                }
            }
            (_, answer) => return Err(format!("{answer:?}")),
        }
        Ok(())
    }

    fn check_after(&self, since: Stamp, consistency: impl Into<Consistency>) -> Result<(), String> {
        match consistency.into().after {
            None => Ok(()),
            Some(after) => self.model.check_size(since, after.size).map_err(|mismatch| mismatch.what),
        }
    }

    /// Checks the disk's contents after a loss of the server's memory.
    pub(super) fn check_crashed(&self, on_disk: &mut impl FnMut(&str) -> Option<Vec<u8>>) -> Result<(), String> {
        if self.handle.is_none() {
            return Ok(());
        }
        for name in &self.names {
            let Some(bytes) = on_disk(name) else { return Err(format!("{name} is not there")) };
            self.model.check_crashed_size(bytes.len() as u64).map_err(|mismatch| format!("{name}: {mismatch}"))?;
            self.model.check_crashed(0, &bytes).map_err(|mismatch| format!("{name}: {mismatch}"))?;
        }
        Ok(())
    }
}

fn uses_name(call: &Call) -> bool {
    matches!(
        call,
        Call::Lookup { .. } | Call::Create { .. } | Call::Remove { .. } | Call::Rename { .. } | Call::Link { .. }
    )
}

fn same_verifier(known: &mut Option<[u8; 8]>, found: [u8; 8]) -> Result<(), String> {
    match known.replace(found) {
        Some(before) if before != found => Err(format!("the verifier {before:x?} became {found:x?}")),
        _ => Ok(()),
    }
}
