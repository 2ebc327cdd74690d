//! Reading and writing a file's bytes.
//!
//! Owns: opening a file's bytes on first use, the limits of a range, sizes set by clients, clearing setuid and setgid
//! bits when a file's bytes change. Also: whether a change that failed has changed bytes all the same.
//! Does not own: pages, dirty limits, writeback (the engine); times of writes (`objects::inode`).
//! Invariants: a hit asks the host nothing and takes no lock but the file's own. A write is accepted only after the
//! tree has said that the file can be written, and a setuid bit is gone from the host before any byte changes. The
//! times show changed bytes, also if the caller of a write went away in the middle of it. Changed bytes are dirty, or
//! the engine has counted their writes to the host (`product/volume/tests/simulated/holes.rs`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Client, Error, FILE_BYTES_MAX, File, Nanos, PinnedPages, Platform};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::found_files::key_of;
use crate::objects::inode::Inode;
use crate::objects::inode_state::{HostView, Times};
use crate::objects::rights::Use;
use crate::tree::attributes::{AttributeChange, Attributes, Consistency, Outcome};
use crate::tree::caller::Caller;
use crate::tree::directory::{ChangedAttributes, Node, OpenedData, Stable};
use crate::volume::{STOPPED, Volume};

/// How long a call waits for a program of the host to give up its lease on a file. A working program does so in
/// milliseconds. Otherwise the server asks clients to come back, since waiting calls would take others' slots.
const LEASE_WAIT_NS: u64 = Nanos::SECOND;
/// The pauses between two tries: the first one, doubled each time up to the last.
const LEASE_PAUSE_NS: u64 = Nanos::MILLISECOND;
const LEASE_PAUSE_MAX_NS: u64 = 100 * Nanos::MILLISECOND;

/// The bytes of a read.
pub enum ReadBytes {
    /// In page frames, held stable until the drop.
    Pages(PinnedPages),
    /// Copied, if too many frames are held already; or no bytes.
    Copied(Bytes),
}

impl ReadBytes {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.len(),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The result of a read.
pub struct ReadResult {
    /// The bytes: as many as requested, fewer only at the end of the file.
    pub bytes: ReadBytes,
    /// Whether the read reached the end of the file.
    pub end_of_file: bool,
    /// The attributes right after the read.
    pub attributes: Attributes,
}

impl<P: Platform> Volume<P> {
    /// Reads if that needs no wait: every page is in the cache. At most `len` bytes from `offset`, fewer only at the
    /// end of the file.
    #[inline]
    pub fn try_read(&self, inode: &Arc<Inode<P>>, offset: u64, len: u32) -> Option<ReadResult> {
        let file = inode.file()?;
        inode.used_now();
        let len = clamped(file, offset, len);
        let bytes = if len == 0 {
            ReadBytes::Copied(Bytes::new())
        } else {
            ReadBytes::Pages(self.engine.try_read_pinned(file, offset, len)?)
        };
        Some(finish(inode, file, offset, bytes))
    }

    /// Reads at most `len` bytes from `offset`, fewer only at the end of the file; past it, none.
    pub async fn read(&self, inode: &Arc<Inode<P>>, offset: u64, len: u32) -> Result<ReadResult, VolumeError> {
        self.read_by(&Caller::SERVER, None, inode, offset, len).await
    }

    /// [`Volume::read`] by a caller and for a client, as in [`Engine::read_for`](afflux_engine::Engine::read_for).
    pub async fn read_by(
        &self,
        caller: &Caller,
        client: Option<&Client>,
        inode: &Arc<Inode<P>>,
        offset: u64,
        len: u32,
    ) -> Result<ReadResult, VolumeError> {
        inode.require_regular()?;
        inode.used_now();
        self.permit(inode, caller, Use::Read).await?;
        let file = self.opened(caller, inode, false).await?;
        Ok(self.read_file(client, inode, file, offset, len).await?)
    }

    async fn read_file(
        &self,
        client: Option<&Client>,
        inode: &Arc<Inode<P>>,
        file: &File,
        offset: u64,
        len: u32,
    ) -> Result<ReadResult, Error> {
        let len = clamped(file, offset, len);
        let bytes = if len == 0 {
            ReadBytes::Copied(Bytes::new())
        } else {
            match self.engine.read_pinned_for(client, file, offset, len).await? {
                Some(pages) => ReadBytes::Pages(pages),
                None => {
                    let mut copied = vec![0; len];
                    let read = self.engine.read_for(client, file, offset, &mut copied).await?;
                    copied.truncate(read);
                    ReadBytes::Copied(Bytes::from(copied))
                }
            }
        };
        Ok(finish(inode, file, offset, bytes))
    }

    /// Writes all of `data` if that needs no wait. Otherwise it writes nothing or a beginning, which [`Volume::write`]
    /// of the whole completes. Not durable.
    ///
    /// Check the caller's rights first ([`Volume::allows`]).
    #[inline]
    pub fn try_write(&self, caller: &Caller, inode: &Arc<Inode<P>>, offset: u64, data: &[u8]) -> Option<Consistency> {
        let file = inode.writable_file()?;
        inode.used_now();
        if inode.has_privileges() {
            return None;
        }
        let _change = self.try_begin_change(caller, inode)?;
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let written = self.engine.overwrite(file, offset, data);
        if written == 0 {
            let nothing = data.is_empty() && offset <= FILE_BYTES_MAX;
            return nothing.then(|| inode.unchanged());
        }
        let consistency = self.note_written(caller, inode, offset..offset + written as u64);
        (written == data.len()).then_some(consistency)
    }

    /// Writes all of `data`, or fails (a beginning may have been written). Waits while the device has too much
    /// unwritten data. Not durable: see [`Volume::sync`].
    pub async fn write(&self, inode: &Arc<Inode<P>>, offset: u64, data: Bytes) -> Outcome<()> {
        self.write_by(&Caller::SERVER, None, inode, offset, &data).await
    }

    /// [`Volume::write`] by a caller and for a client, as in [`Engine::write_for`](afflux_engine::Engine::write_for).
    pub async fn write_by(
        &self,
        caller: &Caller,
        client: Option<&Client>,
        inode: &Arc<Inode<P>>,
        offset: u64,
        data: &[u8],
    ) -> Outcome<()> {
        let written = async {
            inode.require_regular()?;
            self.permit(inode, caller, Use::Write).await?;
            inode.used_now();
            let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
            let end = end.ok_or(VolumeError::TooLarge)?;
            if inode.has_ended() {
                return Err(VolumeError::Stale);
            }
            let _change = self.begin_change(caller, inode).await?;
            let file = self.opened(caller, inode, true).await?;
            if data.is_empty() {
                return Ok(inode.unchanged());
            }
            if !inode.may_become_dirty(&(offset..end), self.now(), self.idle_ns()) {
                self.ask(inode).await?;
            }
            let taken = if inode.has_privileges() { self.take_privileges_carried(inode).await? } else { None };
            inode.changes.fetch_add(1, Ordering::Relaxed);
            let writing = Writing::begin(self, caller, inode, file, offset..end);
            self.engine.write_for(client, file, offset, data).await?;
            let written = writing.ended();
            Ok(taken.map_or(written, |taken| taken.then(written)))
        };
        match written.await {
            Ok(consistency) => Outcome { result: Ok(()), consistency },
            // If a beginning was written, the times already show it, also in the attributes before.
            Err(error) => Outcome { result: Err(error), consistency: inode.unchanged() },
        }
    }

    /// Updates the times for written bytes.
    #[inline]
    fn note_written(&self, caller: &Caller, inode: &Arc<Inode<P>>, range: Range<u64>) -> Consistency {
        let consistency = inode.written(self.wall(), &range);
        self.settle_later(inode);
        self.tell_bytes(caller, inode);
        consistency
    }

    /// As [`Volume::take_privileges`], without `changing` held; completed even if the caller is dropped.
    async fn take_privileges_carried(&self, inode: &Arc<Inode<P>>) -> Result<Option<Consistency>, VolumeError> {
        let target = Arc::clone(inode);
        let work = |volume: Arc<Self>| async move {
            let changing = target.changing.lock().await;
            let taken = volume.take_privileges(&target, volume.are_names_durable()).await;
            drop(changing);
            let Some((consistency, stable)) = taken? else { return Ok(None) };
            volume.made_durable(&[&target], stable).await?;
            Ok(Some(consistency))
        };
        self.carried_through("take privileges", work).await.unwrap_or(Err(STOPPED))
    }

    /// Clears the setuid and setgid bits, on the host too, since the file's bytes are about to change. Called with
    /// `changing` held. `None` if there are no such bits, or if the host will clear them. All other bits stay as the
    /// host has them: a local program may have changed the mode since the server last asked.
    pub(crate) async fn take_privileges(
        &self,
        inode: &Arc<Inode<P>>,
        durable: bool,
    ) -> Result<Option<(Consistency, Stable)>, VolumeError> {
        if !inode.has_privileges() {
            return Ok(None);
        }
        let told = inode.mode_and_owner();
        let taken = self.take_seen_privileges(inode, durable).await;
        // Also its own callers' kernel: it asks for no mode after a write.
        self.tell_if_others(inode, told);
        taken
    }

    /// As [`Self::take_privileges`] for the bits that the host shows now.
    async fn take_seen_privileges(
        &self,
        inode: &Arc<Inode<P>>,
        durable: bool,
    ) -> Result<Option<(Consistency, Stable)>, VolumeError> {
        inode.observe_rights(&self.tree.stat(&inode.node).await?);
        let Some(mode) = inode.without_privileges() else {
            return Ok(None);
        };
        let look = inode.look();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let change = AttributeChange { mode: Some(mode), ..AttributeChange::default() };
        match self.tree.set(&inode.node, change, durable).await {
            Ok(ChangedAttributes { stat, stable }) => {
                Ok(Some((inode.changed(stat, self.now(), Times::Keep, Some(&look)), stable)))
            }
            // We may write to this file but do not own it: hosts clear the bits at such a write.
            Err(VolumeError::NotPermitted | VolumeError::Denied) => {
                inode.loses_privileges();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets the size, with `changing` held. On return the host has it, too, but not durably.
    pub(crate) async fn set_size(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        size: u64,
    ) -> Result<Consistency, VolumeError> {
        inode.require_regular()?;
        if size > FILE_BYTES_MAX {
            return Err(VolumeError::TooLarge);
        }
        let file = self.opened(caller, inode, true).await?;
        let taken = self.take_privileges(inode, false).await?;
        inode.changes.fetch_add(1, Ordering::Relaxed);
        self.engine.set_size(file, size).await?;
        let resized = self.reshaped(inode).await;
        Ok(taken.map_or(resized, |(taken, _)| taken.then(resized)))
    }

    /// Updates the times, and the space that the file takes, after a new size or hole; with `changing` held.
    pub(crate) async fn reshaped(&self, inode: &Arc<Inode<P>>) -> Consistency {
        let look = inode.look();
        let seen = self.tree.stat(&inode.node).await.ok().map(|stat| (stat, look));
        let reshaped = inode.resized(self.wall(), seen);
        self.settle_later(inode);
        reshaped
    }

    /// The engine's file, opened now if needed; with `must_write`, a writable one.
    pub(crate) async fn opened<'a>(
        &self,
        caller: &Caller,
        inode: &'a Arc<Inode<P>>,
        must_write: bool,
    ) -> Result<&'a File, VolumeError> {
        let current = |inode: &'a Inode<P>| {
            if must_write { inode.writable_file() } else { inode.file() }
        };
        if let Some(file) = current(inode) {
            return Ok(file);
        }
        self.trim_inodes().await;
        let _opening = inode.opening.lock().await;
        if let Some(file) = current(inode) {
            return Ok(file);
        }
        let look = inode.look();
        let data = self.open_data(&inode.node.used_by(caller), must_write).await?;
        let (stat, writable) = (data.stat, data.writable);
        if inode.file().is_none() {
            self.attach(inode, data).await?;
            // If others changed the file meanwhile, the engine starts with its new contents.
            if inode.observe(stat, &look, self.now()) == HostView::Foreign {
                self.tell_found(inode);
            }
        }
        if writable {
            inode.allow_writing();
        }
        current(inode).ok_or(VolumeError::Denied)
    }

    /// Opens a file's bytes. Gives a program with a lease on the file a moment to release it.
    pub(crate) async fn open_data(&self, node: &Node, must_write: bool) -> Result<OpenedData, VolumeError> {
        let until = self.now().after(LEASE_WAIT_NS);
        let mut pause_ns = LEASE_PAUSE_NS;
        loop {
            match self.tree.open_data(node, must_write).await {
                Err(VolumeError::Leased) if self.now() < until => {}
                opened => return opened,
            }
            self.engine.platform().sleep_until(self.now().after(pause_ns)).await;
            pause_ns = (2 * pause_ns).min(LEASE_PAUSE_MAX_NS);
        }
    }

    /// Gives a new file its engine file, unless another caller that found the file was faster.
    pub(crate) async fn attach_made(&self, inode: &Arc<Inode<P>>, data: OpenedData) -> Result<(), VolumeError> {
        let _opening = inode.opening.lock().await;
        if inode.file().is_none() {
            self.attach(inode, data).await?;
            inode.allow_writing();
        }
        Ok(())
    }

    /// Gives an inode its engine file.
    async fn attach(&self, inode: &Arc<Inode<P>>, data: OpenedData) -> Result<(), VolumeError> {
        let device = self.device(inode.device, &inode.node).await?;
        let size = data.stat.size;
        let file = match key_of(&inode.identity, self.export_of(inode)) {
            Some(key) => self.engine.open_persistent(device, data.backing, &key, size),
            None => self.engine.open(device, data.backing, size),
        };
        inode.opened(file);
        Ok(())
    }
}

/// A write that may change bytes and then wait. If it is dropped before its end, it updates the times.
struct Writing<'a, P: Platform> {
    volume: &'a Volume<P>,
    caller: &'a Caller,
    inode: &'a Arc<Inode<P>>,
    file: &'a File,
    range: Range<u64>,
    before: BytesBefore,
    ended: bool,
}

impl<'a, P: Platform> Writing<'a, P> {
    fn begin(
        volume: &'a Volume<P>,
        caller: &'a Caller,
        inode: &'a Arc<Inode<P>>,
        file: &'a File,
        range: Range<u64>,
    ) -> Self {
        Self { volume, caller, inode, file, range, before: BytesBefore::of(file), ended: false }
    }

    /// All bytes were written.
    fn ended(mut self) -> Consistency {
        self.ended = true;
        self.volume.note_written(self.caller, self.inode, self.range.clone())
    }
}

impl<P: Platform> Drop for Writing<'_, P> {
    fn drop(&mut self) {
        if !self.ended && self.before.may_have_changed(self.file) {
            self.volume.note_written(self.caller, self.inode, self.range.clone());
        }
    }
}

/// `len`, or the length of the file after `offset` if that is less.
#[inline]
fn clamped(file: &File, offset: u64, len: u32) -> usize {
    u64::from(len).min(file.size().saturating_sub(offset)) as usize
}

#[inline]
fn finish<P: Platform>(inode: &Inode<P>, file: &File, offset: u64, bytes: ReadBytes) -> ReadResult {
    let end_of_file = offset.saturating_add(bytes.len() as u64) >= file.size();
    ReadResult { bytes, end_of_file, attributes: inode.attributes() }
}

/// A file right before a change.
pub(super) struct BytesBefore {
    /// The engine's count of changes on the host.
    host_changes: u64,
}

impl BytesBefore {
    pub(super) fn of(file: &File) -> Self {
        Self { host_changes: file.change_count() }
    }

    /// Whether bytes of the file may have changed since.
    pub(super) fn may_have_changed(&self, file: &File) -> bool {
        !file.is_clean() || file.change_count() != self.host_changes
    }
}
