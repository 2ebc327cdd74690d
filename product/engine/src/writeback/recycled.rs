//! Memory of ended requests and syncs, for reuse by the next ones.
//!
//! Owns: empty boxes of requests' ends, answers of rounds and of calls, [`POOLED`] of each at most.
//! Does not own: the work of an end (`complete`, `requests`), the waiters for an answer, the choice of one to use again
//! (`recycler`).
//! Invariants: kept memory holds no file and no engine.

use std::sync::Arc;

use afflux_device::error::DeviceError;
use afflux_pages::wait::Answer;

use crate::devices::file::SharedRound;
use crate::recycler::{Recycler, SharedRecycler};

/// The number of requests in flight on a device: more would hardly be used.
const POOLED: usize = 64;

/// The kept memory of one engine, whose requests end as `W` if they write, and as `C` if they carry no data.
pub(super) struct RecycledMemory<W, C> {
    pub(super) writes: Recycler<Box<Boxed<W>>>,
    pub(super) calls: Recycler<Box<Boxed<C>>>,
    call_answers: SharedRecycler<Answer<Result<(), DeviceError>>>,
    rounds: SharedRecycler<SharedRound>,
}

impl<W, C> RecycledMemory<W, C> {
    /// An answer of a call, not given yet.
    pub(super) fn call_answer(&self) -> Arc<Answer<Result<(), DeviceError>>> {
        self.call_answers.take((), |answer, ()| answer.renew(), |()| Answer::new())
    }

    /// A round, not begun yet.
    pub(super) fn round(&self) -> Arc<SharedRound> {
        let renew = |round: &mut SharedRound, ()| {
            round.result.renew();
            round.granted.renew();
        };
        self.rounds.take((), renew, |()| Arc::default())
    }
}

impl<W, C> Default for RecycledMemory<W, C> {
    fn default() -> Self {
        Self {
            writes: Recycler::new(POOLED),
            calls: Recycler::new(POOLED),
            call_answers: SharedRecycler::new(POOLED),
            rounds: SharedRecycler::new(POOLED),
        }
    }
}

/// A place in a box that is kept after its content was used.
pub(super) struct Boxed<T>(Option<T>);

impl<T> Boxed<T> {
    /// Puts the value into a kept box, or a new one.
    pub(super) fn of(pooled: &Recycler<Box<Self>>, value: T) -> Box<Self> {
        let mut boxed = pooled.take().unwrap_or_else(|| Box::new(Self(None)));
        boxed.0 = Some(value);
        boxed
    }

    pub(super) fn get(&self) -> &T {
        self.0.as_ref().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }

    /// Takes the content out.
    pub(super) fn take(&mut self) -> T {
        self.0.take().unwrap_or_else(|| unreachable!("taken out once, at the end"))
    }
}
