//! Memory of ended requests and syncs, for reuse by the next ones: writeback for a host that is short of memory must
//! not ask it for some.
//!
//! Owns: empty boxes of requests' ends, answers of syncs and calls, [`KEPT`] of each at most.
//! Does not own: the work of an end (`complete`, `requests`), the waiters for an answer.
//! Invariants: kept memory holds no file and no engine. An answer is used again only when nobody else has it. Its locks
//! are the last to be taken: nothing else is locked while one is held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::complete::WriteEnds;
use super::requests::CallEnds;
use crate::error::{DeviceError, Error};
use crate::platform::Platform;
use crate::wait::{Answer, lock};

/// The number of requests in flight on a device: more would hardly be used.
const KEPT: usize = 64;

/// The kept memory of one engine.
pub(super) struct RecycledMemory<P: Platform> {
    pub(super) writes: Boxes<WriteEnds<P>>,
    pub(super) calls: Boxes<CallEnds<P>>,
    pub(super) call_answers: Answers<Result<(), DeviceError>>,
    pub(super) round_answers: Answers<Result<(), Error>>,
}

impl<P: Platform> Default for RecycledMemory<P> {
    fn default() -> Self {
        Self {
            writes: Boxes::default(),
            calls: Boxes::default(),
            call_answers: Answers::default(),
            round_answers: Answers::default(),
        }
    }
}

/// A place in a box that is kept after its content was used.
pub(super) struct Boxed<T>(Option<T>);

impl<T> Boxed<T> {
    /// The content.
    pub(super) fn get(&self) -> &T {
        self.0.as_ref().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }

    /// Takes the content out.
    pub(super) fn take(&mut self) -> T {
        self.0.take().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }
}

pub(super) struct Boxes<T>(Mutex<Vec<Box<Boxed<T>>>>);

impl<T> Default for Boxes<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Boxes<T> {
    pub(super) fn put(&self, value: T) -> Box<Boxed<T>> {
        let spare = lock(&self.0).pop();
        match spare {
            Some(mut boxed) => {
                boxed.0 = Some(value);
                boxed
            }
            None => Box::new(Boxed(Some(value))),
        }
    }

    /// Keeps an emptied box.
    pub(super) fn keep(&self, boxed: Box<Boxed<T>>) {
        debug_assert!(boxed.0.is_none(), "what is kept holds nothing");
        let mut spare = lock(&self.0);
        if spare.len() < KEPT {
            spare.push(boxed);
        }
    }
}

/// How many answers are checked for one that nobody else has.
const LOOKED_AT: usize = 4;

/// Answers, in use by givers and waiters or free; the one taken first is at the front.
pub(super) struct Answers<T>(Mutex<VecDeque<Arc<Answer<T>>>>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Answers<T> {
    /// An answer that was not given.
    pub(super) fn take(&self) -> Arc<Answer<T>> {
        let mut kept = lock(&self.0);
        for _ in 0..LOOKED_AT.min(kept.len()) {
            let renewed = Answer::renew(&mut kept[0]).then(|| Arc::clone(&kept[0]));
            kept.rotate_left(1);
            if let Some(answer) = renewed {
                return answer;
            }
        }
        let answer = Answer::new();
        if kept.len() < KEPT {
            kept.push_back(Arc::clone(&answer));
        }
        answer
    }
}

#[cfg(test)]
mod tests;
