//! Holes: where a file has data, new ones, and space for later writes.
//!
//! Owns: the host's answer joined with the pages that the host does not have yet.
//! Does not own: the host's map of the file (the tree), which pages are unwritten, the steps of a new hole (the
//! engine).
//! Invariants: bytes of an acknowledged write are never reported as a hole, also if they reach the host in the middle
//! of the question. So a hole counts only if the engine had nothing there *before* the host said so: what was clean
//! then is on the host. A hole may be reported as data. A new hole drops unwritten bytes of its range, and no others. A
//! change that fails reports what it changed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{File, Platform};

use crate::data::read_write::BytesBefore;
use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::rights::Use;
use crate::tree::attributes::{Consistency, Outcome};
use crate::tree::caller::Caller;
use crate::tree::directory::Seek;
use crate::volume::{STOPPED, Volume};

/// A reservation of space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// The range reads as zeros from then on.
    pub zeros: bool,
    /// The file ends no earlier than the range.
    pub grows: bool,
}

impl<P: Platform> Volume<P> {
    /// The first offset at or after `offset` with data, or the first in a hole; the end of the file counts as a hole.
    /// The caller needs the right to read. [`VolumeError::PastData`] if `offset` is at or past the end, or if no data
    /// follows. On a file system without holes all of a file is data.
    pub async fn seek_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        offset: u64,
        wanted: Seek,
    ) -> Result<u64, VolumeError> {
        inode.require_regular()?;
        self.permit(inode, caller, Use::Read).await?;
        let size = self.attributes(inode).await?.size;
        if offset >= size {
            return Err(VolumeError::PastData { offset });
        }
        // The file is open from here on: no program can get a lease that the host's answer would wait for.
        self.opened(caller, inode, false).await?;
        match wanted {
            Seek::Hole => Ok(self.next_hole(inode, offset).await?.min(size)),
            Seek::Data => {
                let found = self.next_data(inode, offset).await?;
                found.filter(|at| *at < size).ok_or(VolumeError::PastData { offset })
            }
        }
    }

    /// Makes a range read as zeros, and gives the space of whole pages back if the host can. The size stays. The caller
    /// needs the right to write. Errors are those of a write. Not durable: see [`Volume::sync`].
    pub async fn punch_by(&self, caller: &Caller, inode: &Arc<Inode<P>>, range: Range<u64>) -> Outcome<()> {
        let begun = match self.begin_change(caller, inode).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        let (caller, target) = (caller.clone(), Arc::clone(inode));
        let work = |volume: Arc<Self>| async move {
            let _begun = begun;
            volume.punch_now(&caller, &target, range).await
        };
        match self.carried_through("punch", work).await.unwrap_or(Err(STOPPED)) {
            Ok(consistency) => Outcome { result: Ok(()), consistency },
            Err(error) => Outcome { result: Err(error), consistency: inode.unchanged() },
        }
    }

    async fn punch_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        range: Range<u64>,
    ) -> Result<Consistency, VolumeError> {
        inode.require_regular()?;
        self.permit(inode, caller, Use::Write).await?;
        if range.end > self.file_bytes_max(inode).await {
            return Err(VolumeError::TooLarge);
        }
        if inode.has_ended() {
            return Err(VolumeError::Stale);
        }
        // Others may have changed the rest of a page at the range's ends.
        match inode.is_clean() {
            true => self.ask(inode).await?,
            false => drop(self.attributes(inode).await?),
        }
        let changing = inode.changing.lock().await;
        let file = self.opened(caller, inode, true).await?;
        let taken = self.take_privileges(inode, false).await?;
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let before = BytesBefore::of(file);
        let punched = self.engine.punch(file, range).await;
        if let Err(error) = punched
            && !before.may_have_changed(file)
        {
            return Err(error.into());
        }
        let reshaped = self.reshaped(inode).await;
        let consistency = taken.map_or(reshaped, |(taken, _)| taken.then(reshaped));
        drop(changing);
        self.tell_bytes(caller, inode);
        punched?;
        Ok(consistency)
    }

    /// Gives the file the space of a range: later writes there find space. [`VolumeError::NotSupported`] if the file
    /// system cannot; then nothing has changed. The caller needs the right to write. Not durable: see [`Volume::sync`].
    pub async fn reserve_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        range: Range<u64>,
        how: Reserve,
    ) -> Outcome<()> {
        let begun = match self.begin_change(caller, inode).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        let (caller, target) = (caller.clone(), Arc::clone(inode));
        let work = |volume: Arc<Self>| async move {
            let _begun = begun;
            volume.reserve_now(&caller, &target, range, how).await
        };
        match self.carried_through("reserve", work).await.unwrap_or(Err(STOPPED)) {
            Ok(consistency) => Outcome { result: Ok(()), consistency },
            Err(error) => Outcome { result: Err(error), consistency: inode.unchanged() },
        }
    }

    async fn reserve_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        range: Range<u64>,
        how: Reserve,
    ) -> Result<Consistency, VolumeError> {
        inode.require_regular()?;
        self.permit(inode, caller, Use::Write).await?;
        if range.is_empty() {
            return Err(VolumeError::Invalid { what: "an empty range" });
        }
        if range.end > self.file_bytes_max(inode).await {
            return Err(VolumeError::TooLarge);
        }
        if inode.has_ended() {
            return Err(VolumeError::Stale);
        }
        let changing = inode.changing.lock().await;
        let file = self.opened(caller, inode, true).await?;
        // First, since it may be refused.
        self.tree.reserve(&inode.node, range.clone()).await?;
        let taken = self.take_privileges(inode, false).await?;
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let before = BytesBefore::of(file);
        let filled = self.fill(inode, file, range, how).await;
        if filled.is_err() && !before.may_have_changed(file) {
            return filled.map(|()| inode.unchanged());
        }
        let reshaped = self.reshaped(inode).await;
        let consistency = taken.map_or(reshaped, |(taken, _)| taken.then(reshaped));
        drop(changing);
        self.tell_bytes(caller, inode);
        filled?;
        Ok(consistency)
    }

    /// Zeros and grows a range that is reserved, as far as that is wanted.
    async fn fill(
        &self,
        inode: &Arc<Inode<P>>,
        file: &File,
        range: Range<u64>,
        how: Reserve,
    ) -> Result<(), VolumeError> {
        if how.zeros {
            // The new hole gives the space back.
            self.engine.punch(file, range.clone()).await?;
            self.tree.reserve(&inode.node, range.clone()).await?;
        }
        if how.grows && range.end > file.size() {
            self.engine.set_size(file, range.end).await?;
        }
        Ok(())
    }

    async fn next_data(&self, inode: &Arc<Inode<P>>, offset: u64) -> Result<Option<u64>, VolumeError> {
        let unwritten = match inode.file() {
            Some(file) => self.engine.unwritten(file, offset).await.map(|run| run.start.max(offset)),
            None => None,
        };
        if unwritten == Some(offset) {
            return Ok(unwritten);
        }
        let on_host = match self.tree.seek(&inode.node, offset, Seek::Data).await {
            Err(VolumeError::NotSupported) => Some(offset),
            answer => answer?,
        };
        Ok(on_host.into_iter().chain(unwritten).min())
    }

    async fn next_hole(&self, inode: &Arc<Inode<P>>, offset: u64) -> Result<u64, VolumeError> {
        let (mut from, mut without_unwritten) = (offset, None);
        loop {
            let hole = match self.tree.seek(&inode.node, from, Seek::Hole).await {
                Err(VolumeError::NotSupported) => return Ok(u64::MAX),
                // The host's file ends before: unwritten pages make it longer.
                answer => answer?.unwrap_or(from),
            };
            if without_unwritten == Some(hole) {
                return Ok(hole);
            }
            without_unwritten = Some(hole);
            if let Some(file) = inode.file()
                && let Some(run) = self.engine.unwritten(file, hole).await
                && run.start <= hole
            {
                (from, without_unwritten) = (run.end, None);
            }
        }
    }
}
