//! Syncs of files that wait for a change of the file's attributes.
//!
//! Owns: the meetings of both.
//! Does not own: the batches, which share a PUT of the log because they are given to the records one after the other.
//! Invariants: a sync waits after its bytes were given to the records. It waits for a [`Joining`] that lives, and for
//! one at most.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct State {
    /// The bytes of the file are with the records.
    are_there: bool,
    is_over: bool,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Meeting(Mutex<State>);

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.state();
            change(&mut state);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &mut Context<'_>, is_ready: impl FnOnce(&State) -> bool) -> Poll<()> {
        let mut state = self.state();
        if is_ready(&state) {
            return Poll::Ready(());
        }
        state.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

/// The meetings that wait for a sync, by files.
#[derive(Debug, Default)]
pub(crate) struct Joints(Mutex<BTreeMap<u64, Arc<Meeting>>>);

impl Joints {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Meeting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next sync of a file wait for the end of the returned value. A later call takes an earlier one's sync.
    pub(crate) fn begin(self: &Arc<Self>, ino: u64) -> Joining {
        let meeting = Arc::<Meeting>::default();
        self.all().insert(ino, Arc::clone(&meeting));
        Joining { ino, meeting, joints: Arc::clone(self) }
    }

    /// Reports that a file's bytes are with the records. Waits for a change that takes the bytes along, if there is
    /// one.
    pub(crate) async fn meet(&self, ino: u64) {
        let Some(meeting) = self.all().remove(&ino) else { return };
        meeting.change(|state| state.are_there = true);
        poll_fn(|cx| meeting.poll(cx, |state| state.is_over)).await;
    }
}

/// A change of attributes in flight. The future ends when the file's bytes are with the records.
pub(crate) struct Joining {
    ino: u64,
    meeting: Arc<Meeting>,
    joints: Arc<Joints>,
}

impl Future for Joining {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.meeting.poll(cx, |state| state.are_there)
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        let mut all = self.joints.all();
        if all.get(&self.ino).is_some_and(|meeting| Arc::ptr_eq(meeting, &self.meeting)) {
            all.remove(&self.ino);
        }
        drop(all);
        self.meeting.change(|state| state.is_over = true);
    }
}
