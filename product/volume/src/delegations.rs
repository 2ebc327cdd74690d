//! Read delegations (RFC 8881, section 10.4): clients that read a file from their own cache until they are asked to
//! stop.
//!
//! Owns: the holders of each file's delegations, the changes in progress; recalls, their time limit.
//! Does not own: the moment of a grant, stateids, the call to a client (front ends); the wait and the kinds of changes
//! (`data::changing`).
//! Invariants: while a change of a file is in progress, nobody but the changer gets a delegation of the file or has one
//! (`nobody_has_a_delegation_while_another_changes_the_file`). A writer counts the change before the search for
//! delegations, and a grant counts the delegation before the search for writers. So one of both sees the other. A
//! holder that does not return its delegation within the time limit loses it, and so does one whose lease has ended. So
//! no holder delays a change for longer. While nobody has turned delegations on, a change costs one load. The lock is
//! never held over a wait or a recall.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;

use afflux_engine::Nanos;

use crate::lock::lock;
use crate::tree::caller::Changer;

/// Files share so many counts. Two files with one count delay or refuse a grant now and then, and nothing else.
const MARKS: usize = 4096;

/// A client's delegation of one file, on the side of the front end.
pub trait DelegationHolder: Send + Sync + 'static {
    /// A change waits until the client returns the delegation. Called again while it waits. Must not wait, and must not
    /// call the volume.
    fn recall(self: Arc<Self>);

    /// Whether the client's lease has ended, so that nobody waits for it.
    fn has_lapsed(&self, now: Nanos) -> bool;

    /// The delegation was not returned in time, and counts no more. Called before the change, under a lock: must not
    /// wait, and must not call the volume.
    fn revoke(&self);
}

/// Files that share a mark count together.
#[derive(Default)]
struct Mark {
    changes: AtomicU32,
    delegations: AtomicU32,
}

/// Delegations are granted.
struct On {
    marks: Arc<[Mark]>,
    /// Time that a client has to return one.
    recall_ns: u64,
}

/// A change of a file in progress: nobody else gets a delegation of the file until the drop.
#[derive(Default)]
#[must_use]
pub struct ChangeInProgress(Option<(Arc<[Mark]>, usize)>);

impl Drop for ChangeInProgress {
    fn drop(&mut self) {
        if let Some((marks, at)) = &self.0 {
            marks[*at].changes.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

struct HeldDelegation {
    holder: Arc<dyn DelegationHolder>,
    /// When it is revoked, once it was recalled.
    due: Option<Nanos>,
}

/// The delegations of one file.
#[derive(Default)]
struct FileDelegations {
    /// By the client's number.
    held: BTreeMap<u64, HeldDelegation>,
    /// Changes that wait.
    wakers: Vec<Waker>,
}

/// Counts of delegations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DelegationCounts {
    /// Delegations that clients have.
    pub held: u64,
    /// Recalled since the start, each once.
    pub recalled: u64,
    /// Revoked since the start, since the client did not return them in time.
    pub revoked: u64,
}

/// The delegations of a volume's files, by the files' numbers.
#[derive(Default)]
pub struct Delegations {
    on: OnceLock<On>,
    files: Mutex<BTreeMap<u64, FileDelegations>>,
    held: AtomicU64,
    recalled: AtomicU64,
    revoked: AtomicU64,
}

impl Delegations {
    /// Lets front ends grant delegations from now on, and gives clients this time to return one. To be called before
    /// the first call of a client.
    pub fn turn_on(&self, recall_ns: u64) {
        self.on.get_or_init(|| On { marks: (0..MARKS).map(|_| Mark::default()).collect(), recall_ns });
    }

    /// Whether delegations may be granted.
    #[inline]
    pub fn are_on(&self) -> bool {
        self.on.get().is_some()
    }

    /// The counts now.
    pub fn counts(&self) -> DelegationCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DelegationCounts { held: of(&self.held), recalled: of(&self.recalled), revoked: of(&self.revoked) }
    }

    /// Grants a client a delegation of a file. False while somebody changes the file, while a delegation of it is
    /// recalled, if the client has one, and if `may` says so. `may` is asked under a lock, once each change that begins
    /// sees the delegation.
    pub fn try_grant(
        &self,
        file: u64,
        client: u64,
        holder: Arc<dyn DelegationHolder>,
        may: impl FnOnce() -> bool,
    ) -> bool {
        let Some(on) = self.on.get() else { return false };
        let mut files = lock(&self.files);
        if files.get(&file).is_some_and(|it| it.held.contains_key(&client) || it.held.values().any(is_recalled)) {
            return false;
        }
        let mark = &on.marks[at(file)];
        mark.delegations.fetch_add(1, Ordering::SeqCst);
        if mark.changes.load(Ordering::SeqCst) > 0 || !may() {
            mark.delegations.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        self.held.fetch_add(1, Ordering::SeqCst);
        files.entry(file).or_default().held.insert(client, HeldDelegation { holder, due: None });
        true
    }

    /// A client has returned its delegation of a file, or has ended. Waiting changes go on.
    pub fn end(&self, file: u64, client: u64) {
        let mut files = lock(&self.files);
        let Some(of_file) = files.get_mut(&file) else { return };
        if of_file.held.remove(&client).is_none() {
            return;
        }
        let wakers = std::mem::take(&mut of_file.wakers);
        if of_file.held.is_empty() {
            files.remove(&file);
        }
        self.count_ended(file, 1);
        drop(files);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn count_ended(&self, file: u64, ended: u32) {
        self.held.fetch_sub(ended.into(), Ordering::SeqCst);
        if let Some(on) = self.on.get() {
            on.marks[at(file)].delegations.fetch_sub(ended, Ordering::SeqCst);
        }
    }

    /// Begins a change of a file, unless others have delegations of it: then these are recalled, and the result is the
    /// time at which the first of them is revoked.
    pub fn begin_change(&self, file: u64, by: Changer, now: Nanos) -> Result<ChangeInProgress, Nanos> {
        let Some(on) = self.on.get() else { return Ok(ChangeInProgress::default()) };
        let mark = &on.marks[at(file)];
        mark.changes.fetch_add(1, Ordering::SeqCst);
        let change = ChangeInProgress(Some((Arc::clone(&on.marks), at(file))));
        if mark.delegations.load(Ordering::SeqCst) == 0 || by == Changer::Opener {
            return Ok(change);
        }
        self.recall(file, by, now, on.recall_ns).map(|()| change)
    }

    /// Recalls what others than `by` have of a file. The error is the time at which the first is revoked.
    #[cold]
    fn recall(&self, file: u64, by: Changer, now: Nanos, recall_ns: u64) -> Result<(), Nanos> {
        let (mut recalls, mut until, mut revoked) = (Vec::new(), None, Vec::new());
        let mut files = lock(&self.files);
        let Some(of_file) = files.get_mut(&file) else { return Ok(()) };
        for (client, held) in of_file.held.iter_mut().filter(|(client, _)| by != Changer::Holder(**client)) {
            if held.holder.has_lapsed(now) || held.due.is_some_and(|due| due <= now) {
                revoked.push(*client);
                continue;
            }
            if held.due.is_none() {
                self.recalled.fetch_add(1, Ordering::Relaxed);
            }
            let due = *held.due.get_or_insert(now.after(recall_ns));
            until = Some(until.map_or(due, |until: Nanos| until.min(due)));
            recalls.push(Arc::clone(&held.holder));
        }
        for client in &revoked {
            of_file.held.remove(client).inspect(|held| held.holder.revoke());
        }
        let wakers = if revoked.is_empty() { Vec::new() } else { std::mem::take(&mut of_file.wakers) };
        if of_file.held.is_empty() {
            files.remove(&file);
        }
        self.count_ended(file, revoked.len() as u32);
        self.revoked.fetch_add(revoked.len() as u64, Ordering::Relaxed);
        drop(files);
        wakers.into_iter().for_each(Waker::wake);
        recalls.into_iter().for_each(DelegationHolder::recall);
        until.map_or(Ok(()), Err)
    }

    /// Has the waker woken once a client has one delegation of the file less. False if nobody has any.
    pub(crate) fn try_wait(&self, file: u64, waker: &Waker) -> bool {
        let mut files = lock(&self.files);
        let Some(of_file) = files.get_mut(&file) else { return false };
        if !of_file.wakers.iter().any(|known| known.will_wake(waker)) {
            of_file.wakers.push(waker.clone());
        }
        true
    }
}

fn is_recalled(held: &HeldDelegation) -> bool {
    held.due.is_some()
}

/// The mark of a file.
fn at(file: u64) -> usize {
    // Numbers of files are often multiples of a power of two.
    (file.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % MARKS
}

#[cfg(test)]
mod tests;
