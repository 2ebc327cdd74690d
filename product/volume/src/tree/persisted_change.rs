//! A change whose call may come again after a kill.
//!
//! Owns: the seam to the memory of such a change, the note that a tree makes in it.
//! Does not own: that memory (front ends), the answer to a repetition (`names::repeated`).
//! Invariants: a tree notes what the host has done, right after the host's call. So a note is knowledge and no guess: a
//! change without one may have been carried out or not.

use std::fmt;
use std::sync::Arc;

use crate::tree::identity::Identity;

/// The part of a change that an earlier process has carried out for the same call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// None: no process has begun it.
    Nothing,
    /// The host may have been asked. Nobody knows whether it has done anything.
    Begun {
        /// The value of the beginning: the wall clock, say, in nanoseconds.
        value: u64,
        /// The number of the object at the beginning; zero if unknown.
        object: u64,
    },
    /// The host has carried it out.
    Done {
        /// The number of the object that it made; zero if it made none, or if that is unknown.
        object: u64,
    },
}

/// The memory of a change, which outlives the process.
pub trait PersistedChange: Send + Sync + fmt::Debug {
    /// The part of it that an earlier process has carried out.
    fn before(&self) -> Before;

    /// Notes the end of the host's call, with the number of the new object. The number is zero without one.
    fn note_done(&self, object: u64);
}

/// Notes a change, with the object that it made.
type Noting = dyn Fn(Option<&Identity>) + Send + Sync;

/// A tree's way to note that the host has carried out a change. A tree does so on the thread of the host's call, before
/// anything else that may wait. A tree whose changes end with its process need not.
#[derive(Clone, Default)]
pub struct ChangeNote(Option<Arc<Noting>>);

impl ChangeNote {
    pub(crate) fn new(note: impl Fn(Option<&Identity>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(note)))
    }

    /// The host has made this object.
    pub fn made(&self, object: &Identity) {
        self.0.iter().for_each(|note| note(Some(object)));
    }

    /// The host has changed names of objects that were there.
    pub fn done(&self) {
        self.0.iter().for_each(|note| note(None));
    }
}
