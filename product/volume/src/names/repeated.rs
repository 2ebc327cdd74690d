//! Changes of names that an earlier process may have carried out for the same call.
//!
//! Owns: the decision whether a repetition that fails counts as done.
//! Does not own: the memory of the earlier process (front ends), the changes (`entries`).
//! Invariants: a client that has its directory for itself sees no error of a change that succeeded. A call that no
//! earlier process has begun is judged by its own outcome alone.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::handle::handle_number;
use crate::objects::inode::Inode;
use crate::tree::attributes::Attributes;
use crate::tree::stat::Kind;
use crate::volume::Volume;

/// The host's clock of files may be behind its wall clock by one tick, which is 10 ms at most.
const TICK_NS: u64 = 10_000_000;

/// The part of a change that an earlier process had carried out for the same call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// None: no process has begun it.
    Nothing,
    /// The host may have been asked.
    Begun {
        /// For a change of names the wall clock at the beginning, in nanoseconds.
        value: u64,
        /// The number of the object at the beginning; zero if unknown.
        object: u64,
    },
    /// All of it.
    Done,
}

/// A directory and a name in it.
type Name<'a, P> = (&'a Arc<Inode<P>>, &'a [u8]);

impl<P: Platform> Volume<P> {
    /// The number of the object with a name. Waits for the host unless the name is known.
    pub async fn number_of(&self, (directory, name): Name<'_, P>) -> Option<u64> {
        let found = match self.try_lookup(directory, name) {
            Some(found) => found,
            None => self.lookup(directory, name).await.ok()?,
        };
        handle_number(self.handle(&found.0).as_bytes())
    }

    /// Whether an earlier process has carried out a rename: the object has the new name. After an exchange both names
    /// are there, so an error would not tell.
    pub async fn is_renamed(&self, before: Before, new: Name<'_, P>) -> bool {
        match before {
            Before::Nothing => false,
            Before::Done => true,
            Before::Begun { object, .. } => object != 0 && self.number_of(new).await == Some(object),
        }
    }

    /// Whether a change was done, or has been begun and its object has changed since.
    pub async fn may_be_done(&self, before: Before, changed: &Arc<Inode<P>>) -> bool {
        match before {
            Before::Nothing => false,
            Before::Done => true,
            Before::Begun { value, .. } => {
                let since = i128::from(value.saturating_sub(TICK_NS));
                self.attributes(changed).await.is_ok_and(|found| found.ctime.as_nanos() >= since)
            }
        }
    }

    /// The result of making an object of this kind. A name that an earlier process has made for this call counts as
    /// made.
    pub async fn made_before(
        &self,
        before: Before,
        (directory, name): Name<'_, P>,
        kind: Kind,
        result: Result<(Arc<Inode<P>>, Attributes), VolumeError>,
    ) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
        match result {
            Err(VolumeError::Exists) if self.may_be_done(before, directory).await => {
                let found = self.lookup(directory, name).await?;
                if found.0.kind() == kind { Ok(found) } else { Err(VolumeError::Exists) }
            }
            result => result,
        }
    }

    /// The result of removing or moving a name. If an earlier process has done so for this call, that counts.
    pub async fn gone_before(
        &self,
        before: Before,
        directory: &Arc<Inode<P>>,
        result: Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        match result {
            Err(VolumeError::NotFound) if self.may_be_done(before, directory).await => Ok(()),
            result => result,
        }
    }
}
