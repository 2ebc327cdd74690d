//! The listener to changes that others made, and its notices.
//!
//! Owns: the forms of a change, the slot of the one listener.
//! Does not own: which changes are others', and when the listener is notified (`coherence`).
//! Invariants: without a listener, asking for it costs one load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::lock::lock;
use crate::objects::handle::FileHandle;
use crate::tree::attributes::DeviceKey;

/// A change that was not made through the listener's front end: by a client of another one, or by a program of the host
/// as the host's answer showed. What it names is outdated now; the listener may get the same change more than once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForeignChange {
    /// Bytes or the size of this file, and its attributes.
    Bytes(FileHandle),
    /// Attributes of this object: mode, owner, times, number of names, extended attributes.
    Attributes(FileHandle),
    /// This name in the directory leads to another object now, or to none; the directory's attributes changed, too.
    Name {
        /// Handle of the directory that changed.
        directory: FileHandle,
        /// Name in the directory that changed.
        name: Bytes,
    },
    /// Any names in this directory, and its attributes.
    Names(FileHandle),
}

/// A front end whose kernel or clients cache copies: it has to be notified of others' changes.
pub trait ForeignListener: Send + Sync + 'static {
    /// Others changed something on this device. Must not wait and must not call the volume: locks may be held. Most
    /// changes concern objects that the front end never gave out.
    fn changed(&self, device: DeviceKey, change: ForeignChange);
}

/// The slot of the one listener.
#[derive(Default)]
pub(crate) struct ListenerSlot {
    is_taken: AtomicBool,
    listener: Mutex<Option<Arc<dyn ForeignListener>>>,
}

impl ListenerSlot {
    /// Replaces the listener.
    pub(crate) fn set(&self, listener: Option<Arc<dyn ForeignListener>>) {
        self.is_taken.store(listener.is_some(), Ordering::Release);
        let last = std::mem::replace(&mut *lock(&self.listener), listener);
        // Outside the lock: the drop is the front end's code.
        drop(last);
    }

    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    #[cold]
    pub(crate) fn tell(&self, device: DeviceKey, change: ForeignChange) {
        let listener = lock(&self.listener).clone();
        if let Some(listener) = listener {
            listener.changed(device, change);
        }
    }
}
