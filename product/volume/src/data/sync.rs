//! Making bytes, names and attributes durable.
//!
//! Owns: which sync a call needs, the use of one sync of the host for all its waiters; what fsync(2) and close(2) of a
//! program ask beyond a sync of bytes, and the error that they report.
//! Does not own: writeback (the engine), the host's calls (the tree), when names are durable by themselves
//! (`Volume::set_names_durable`).
//! Invariants: success means that all data of the object that was acknowledged before the call, and lies in the range,
//! is durable. For an fsync, so are the object's attributes and a directory's entries. An inode is dropped only when
//! nothing of it waits for a sync.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Client, Engine, File, Nanos, Platform};

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::rights::Use;
use crate::tree::attributes::{Kind, Outcome};
use crate::tree::caller::Caller;
use crate::tree::directory::Stable;
use crate::volume::Volume;

impl<P: Platform> Volume<P> {
    /// Makes earlier writes to `len` bytes from `offset` durable (`len` 0: to the end), and the size. An error of an
    /// earlier write of the file is reported until a later write succeeds. Names and attributes are durable already, by
    /// each call that changes them.
    ///
    /// Only the modification time is an exception. It is set on the host once all of the file is written, here or
    /// later. It is not made durable: after a crash of the host it may be the time of the writeback. After a restart of
    /// the server alone, it is no earlier than the time that was reported to clients for synced data.
    pub async fn sync(&self, inode: &Arc<Inode<P>>, offset: u64, len: u64) -> Outcome<()> {
        self.sync_for(None, inode, offset, len).await
    }

    /// [`Volume::sync`] for a client, as in [`Engine::sync_for`](afflux_engine::Engine::sync_for).
    pub async fn sync_for(&self, client: Option<&Client>, inode: &Arc<Inode<P>>, offset: u64, len: u64) -> Outcome<()> {
        let result = self.sync_bytes(client, inode, offset, len).await;
        if result.is_ok() && inode.needs_settling() {
            // If the times cannot be set now, it is tried again later.
            self.try_settle(inode).await;
        }
        Outcome { result, consistency: inode.unchanged() }
    }

    /// [`Volume::sync_for`] at a caller's request: its duration is reported as a COMMIT, unless nothing can have been
    /// written.
    pub async fn commit_by(
        &self,
        caller: &Caller,
        client: Option<&Client>,
        inode: &Arc<Inode<P>>,
        offset: u64,
        len: u64,
    ) -> Outcome<()> {
        if let Err(error) = self.permit(inode, caller, Use::Commit).await {
            return Outcome { result: Err(error), consistency: inode.unchanged() };
        }
        let engine = &self.engine;
        let _noted = inode.writable_file().map(|file| NotedCommit { engine, client, file, began: self.now() });
        self.sync_for(client, inode, offset, len).await
    }

    /// [`Volume::sync_for`] without the times: also for a caller that holds `changing`.
    pub(super) async fn sync_bytes(
        &self,
        client: Option<&Client>,
        inode: &Arc<Inode<P>>,
        offset: u64,
        len: u64,
    ) -> Result<(), VolumeError> {
        if inode.has_ended() {
            return Err(VolumeError::Stale);
        }
        match inode.kind() {
            Kind::Regular => {}
            Kind::Directory => return self.make_durable(inode).await,
            _ => return Ok(()),
        }
        // Without a writable file, nothing was written since the last sync of the whole file.
        let Some(file) = inode.writable_file() else {
            return Ok(());
        };
        let end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
        let changes = inode.changes.load(Ordering::Acquire);
        self.engine.sync_for(client, file, offset..end).await?;
        if offset == 0 && end >= file.size() {
            inode.flushed(changes);
        }
        Ok(())
    }

    /// Makes a directory's entries, or an object's attributes, durable as they are now. One further sync serves all
    /// callers that come during a sync of the object.
    pub(crate) async fn make_durable(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if !self.are_names_durable() {
            return Ok(());
        }
        let wanted = inode.changes.load(Ordering::Acquire);
        let mut durable = inode.durable.lock().await;
        if *durable >= wanted {
            return Ok(());
        }
        let upto = inode.changes.load(Ordering::Acquire);
        self.tree.sync(&inode.node).await?;
        *durable = upto;
        Ok(())
    }

    /// Makes a change of the tree durable: by the sync that the tree began, or by a sync of each of `changed`, in their
    /// order.
    pub(crate) async fn made_durable(&self, changed: &[&Arc<Inode<P>>], begun: Stable) -> Result<(), VolumeError> {
        let device = changed.first().filter(|_| self.are_names_durable());
        let device = match device {
            Some(inode) => self.device(inode.device, &inode.node).await.ok(),
            None => None,
        };
        let _first = device.and_then(|device| self.engine.prioritize_names(device));
        if let Some(sync) = begun.into_begun() {
            return sync.await;
        }
        for inode in changed {
            self.make_durable(inode).await?;
        }
        Ok(())
    }

    /// Makes all changes of names and attributes durable, if calls do not wait for that
    /// ([`Volume::set_names_durable`]).
    pub async fn sync_names(&self) -> Result<(), VolumeError> {
        if self.are_names_durable() { Ok(()) } else { self.tree.sync_everything().await }
    }

    /// Makes all of a file durable on the host, with its times, so that the inode can be dropped. False if that is not
    /// possible now.
    pub(crate) async fn try_clean(&self, inode: &Arc<Inode<P>>) -> bool {
        let synced = match inode.writable_file() {
            Some(_) => self.sync_bytes(None, inode, 0, 0).await.is_ok(),
            None => true,
        };
        synced && self.try_settle(inode).await
    }
}

/// A COMMIT under way; it is reported when it ends or its caller goes away.
struct NotedCommit<'a, P: Platform> {
    engine: &'a Engine<P>,
    client: Option<&'a Client>,
    file: &'a File,
    began: Nanos,
}

impl<P: Platform> Drop for NotedCommit<'_, P> {
    fn drop(&mut self) {
        self.engine.note_commit(self.client, self.file, self.began);
    }
}

impl<P: Platform> Volume<P> {
    /// Makes the object's attributes, and a directory's entries, durable, whether or not calls that change them wait
    /// for that.
    pub async fn sync_object(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        self.tree.sync(&inode.node).await
    }

    /// The error of an earlier write of the file that is not written yet.
    pub fn pending_error(&self, inode: &Arc<Inode<P>>) -> Option<VolumeError> {
        inode.file()?.write_error().map(VolumeError::from)
    }

    /// Whether a limit may refuse bytes of the file that were accepted, such as a quota of another computer. Then a
    /// close has to wait until they are written.
    pub fn may_be_refused(&self, inode: &Arc<Inode<P>>) -> bool {
        inode.file().is_some_and(afflux_engine::File::may_be_refused)
    }
}
