//! The part of the data core that the tree needs.
//!
//! Owns: the seam, and its implementation by a volume in an object store.
//! Does not own: bytes, segments, the writers' fence.
//! Invariants: those that the seam demands.

use std::future::{Future, ready};
use std::sync::Arc;

use afflux_engine::Backing;
use afflux_volume::{Joint, Seek, VolumeError};

use super::holders::HeldNode;
use crate::error::ObjectVolumeError;
use crate::file::BodyInMemory;
use crate::format::records::{Body, VolumeHeader};
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordDatabase};

/// The bytes below a tree of names.
pub trait DataCore: Send + Sync + 'static {
    /// The database that has the tree's records, too.
    type Records: RecordDatabase;

    /// The open database.
    fn records(&self) -> &Self::Records;

    /// The header of the volume, as it was at the opening.
    fn header(&self) -> VolumeHeader;

    /// The time of day, since 1970.
    fn wall_ns(&self) -> u64;

    /// The body of a file as far as memory has it.
    fn body_in_memory(&self, ino: u64) -> BodyInMemory;

    /// The newest body of a file, also with writes that wait for its record to be read.
    fn body(&self, ino: u64) -> impl Future<Output = Result<Body, ObjectVolumeError>> + Send;

    /// The tree made a file of this number. It has no bytes yet, so nothing has to be read for it.
    fn begin_file(&self, _ino: u64) {}

    /// The device's name for a file. It must keep `held` if the file may be used through it.
    fn backing(&self, held: Arc<HeldNode>) -> Backing {
        Backing::new(held)
    }

    /// Lets the next sync of a file wait for a change of its attributes, which then shares its PUT. `None` if data and
    /// records share none.
    fn join(&self, _ino: u64) -> Option<Joint> {
        None
    }

    /// The first offset at or after `from` with data, or in a hole; the end of the file counts as a hole. `None` if
    /// there is none, or if the file ends at or before `from`. `NotSupported` by default: then files have no holes.
    fn seek(
        &self,
        _ino: u64,
        _from: u64,
        _wanted: Seek,
    ) -> impl Future<Output = Result<Option<u64>, VolumeError>> + Send {
        ready(Err(VolumeError::NotSupported))
    }

    /// Removes an object without a name and without a holder: first its bytes, at last its inode, body and mark. The
    /// tree may call it twice for one object.
    fn reap(&self, ino: u64) -> impl Future<Output = Result<(), ObjectVolumeError>> + Send;

    /// Waits until this writer may answer a call.
    fn wait_to_answer(&self) -> impl Future<Output = Result<(), ObjectVolumeError>> + Send;
}

impl<O, R, C> DataCore for ObjectVolume<O, R, C>
where
    O: Objects + 'static,
    R: RecordDatabase + 'static,
    C: Clock + 'static,
{
    type Records = R;

    fn records(&self) -> &R {
        Self::records(self)
    }

    fn header(&self) -> VolumeHeader {
        Self::header(self).clone()
    }

    fn wall_ns(&self) -> u64 {
        self.clock.wall_ns()
    }

    fn body_in_memory(&self, ino: u64) -> BodyInMemory {
        Self::body_in_memory(self, ino)
    }

    async fn body(&self, ino: u64) -> Result<Body, ObjectVolumeError> {
        Self::body(self, ino).await
    }

    fn begin_file(&self, ino: u64) {
        self.state().begin_file(ino, &self.limits, self.records.durable_through());
    }

    fn join(&self, ino: u64) -> Option<Joint> {
        Some(Joint::by(self.joints.begin(ino)))
    }

    async fn seek(&self, ino: u64, from: u64, wanted: Seek) -> Result<Option<u64>, VolumeError> {
        Ok(Self::seek(self, ino, from, wanted).await?)
    }

    async fn reap(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        Self::reap(self, ino).await
    }

    async fn wait_to_answer(&self) -> Result<(), ObjectVolumeError> {
        Self::wait_to_answer(self).await
    }
}
