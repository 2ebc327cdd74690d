//! OPEN, READ, WRITE, COPY_FILE_RANGE, FALLOCATE, LSEEK, FLUSH, FSYNC and FSYNCDIR.
//!
//! Owns: the flags of an opened file, the offsets of appends, which sync an fsync needs; the moment at which the kernel
//! drops a page with bytes that a mapping has stored past a file's end.
//! Does not own: the cache and durability (the volume); which changes are synchronous (`synchronous`); the order of one
//! mount's appends, which is the kernel's.
//! Invariants: an open that succeeds has asked the host for the wanted use. An fsync that succeeds has made the bytes
//! durable, and for `fsync` also names and attributes that were changed here. A page with bytes past the end is written
//! back and dropped before the file grows past it, and no lock is held meanwhile.
//!
//! A program may store bytes in the rest of a file's last page through a shared mapping. These bytes are no part of the
//! file. The kernel cuts a page at the file's end when it writes the page back. Without a notice the kernel's page
//! stays while the file grows, and these bytes get into the file. The kernel's own WRITE of pages needs no such notice:
//! the kernel may send it in order to take one. Nor does SETATTR: the kernel sends no WRITE of the file until SETATTR
//! has its answer, so it cannot drop a changed page.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_frontend::RecordedCall;
use afflux_frontend::trace::TracedOperation;
use afflux_volume::{
    AttributeChange, Attributes, Before, CloneSide, FILE_BYTES_MAX, Inode, Platform, Reserve, Seek, VolumeError,
    handle_hash,
};
use futures_util::future::select;

use crate::abi::{Put, falloc, o, open as flag, seek};
use crate::limits::{DATA_BYTES_MAX, DROP_PATIENCE_NS, PAGE_BYTES};
use crate::mount::{Mount, Outcome};
use crate::nodes::ContentStamp;
use crate::open_files::OpenFile;
use crate::operations::{acting, locks, synchronous};
use crate::reply::{Errno, ReplyDraft};
use crate::request::{OpenExtent, RequestHeader, is_synchronous, is_write};

/// `struct fuse_open_out`.
pub(super) fn open_out(into: &mut impl Put, fh: u64, open_flags: u32) {
    into.u64(fh);
    into.u32(open_flags);
    into.u32(0);
}

/// The flags of a file of which the kernel caches no bytes.
pub(super) fn direct<P: Platform>(on: &Mount<P>, flags: u32) -> u32 {
    let flush = if flags & o::ACCMODE == o::RDONLY { no_flush(on) } else { 0 };
    flag::DIRECT_IO | flag::PARALLEL_DIRECT_WRITES | flush
}

/// A file that is open for reading alone has no errors of writes to report at its close. But the close ends locks.
fn no_flush<P: Platform>(on: &Mount<P>) -> u32 {
    if on.locker.is_some() { 0 } else { flag::NOFLUSH }
}

/// Whether the kernel caches the bytes that it reads through this open.
fn is_cached_by_kernel<P: Platform>(on: &Mount<P>, flags: u32) -> bool {
    on.options.kernel_cache && !is_write(flags)
}

/// The answer about an open file; `attributes` are those of a file whose bytes the kernel caches.
fn opened<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
    flags: u32,
    attributes: Option<&Attributes>,
) -> Outcome {
    let fh = on.open(header, header.node, flags, on.volume.hold(inode)?)?;
    locks::share(on, fh, inode, flags)?;
    let open_flags = match attributes.map(ContentStamp::of) {
        Some(stamp) if on.known().replace_stamp(header.node, stamp) == Some(stamp) => flag::KEEP_CACHE | no_flush(on),
        Some(_) => no_flush(on),
        None => direct(on, flags),
    };
    let mut answer = ReplyDraft::empty();
    answer.granted.file = Some(fh);
    open_out(&mut answer.head, fh, open_flags);
    Ok(answer)
}

/// The rights that an open needs: a sum of read 1, write 2, execute 4.
fn rights_for(flags: u32) -> u8 {
    let reads = match flags & o::ACCMODE {
        o::WRONLY => 0,
        _ if flags & o::EXECUTES != 0 => 4,
        _ => 1,
    };
    reads | if is_write(flags) { 2 } else { 0 }
}

pub(super) fn try_open<P: Platform>(on: &Mount<P>, header: &RequestHeader, flags: u32) -> Option<Outcome> {
    if flags & o::TRUNC != 0 || acting::is_doubtful(on, header) {
        return None;
    }
    let inode = on.try_object(header.node)?;
    // No bytes at all: whether the file is open below for this use.
    match is_write(flags) {
        true => drop(on.volume.try_write(&on.own, &inode, 0, &[])?),
        false => drop(on.volume.try_read(&inode, 0, 0)?),
    }
    let attributes = if is_cached_by_kernel(on, flags) { Some(on.volume.try_attributes(&inode)?) } else { None };
    Some(opened(on, header, &inode, flags, attributes.as_ref()))
}

pub(super) async fn open<P: Platform>(on: &Mount<P>, header: &RequestHeader, flags: u32) -> Outcome {
    let inode = on.object(header.node).await?;
    match is_write(flags) {
        true => on.volume.write_by(&on.own, None, &inode, 0, &[]).await.result?,
        false => drop(on.volume.read_by(&on.own, None, &inode, 0, 0).await?),
    }
    acting::check_open(on, header, &inode, rights_for(flags)).await?;
    // Until the open has its own.
    let mut _share = None;
    if flags & o::TRUNC != 0 {
        _share = Some(locks::reserve_cut(on, header, &inode, flags)?);
        let empty = AttributeChange { size: Some(0), ..AttributeChange::default() };
        on.volume.set_attributes_by(&on.own, &inode, empty, None).await.result?;
        synchronous::size(on, &inode, is_synchronous(flags)).await?;
    }
    let attributes = if is_cached_by_kernel(on, flags) { Some(on.volume.attributes(&inode).await?) } else { None };
    opened(on, header, &inode, flags, attributes.as_ref())
}

/// Records a call, if somebody reads the recording, with the sync of a write that is to be durable.
fn record<P: Platform>(
    on: &Mount<P>,
    file: &OpenFile<P>,
    operation: TracedOperation,
    offset: u64,
    bytes: u64,
    is_durable: bool,
) {
    if on.recording().is_on() {
        let hash = handle_hash(on.volume.handle(&file.inode).as_bytes()).unwrap_or_default();
        let call = RecordedCall { operation, file: hash, offset, bytes };
        on.recording().note_call(call, is_durable, || on.volume.engine().platform().now().0);
    }
}

/// The bytes to read: at most a reply's limit, and none past the largest offset of a file.
fn readable(extent: OpenExtent) -> u32 {
    let to_end = FILE_BYTES_MAX.saturating_sub(extent.offset);
    u64::from(extent.size).min(DATA_BYTES_MAX as u64).min(to_end) as u32
}

pub(super) fn try_read<P: Platform>(on: &Mount<P>, extent: OpenExtent) -> Option<Outcome> {
    let file = match on.opened(extent.fh) {
        Ok(file) => file,
        Err(errno) => return Some(Err(errno)),
    };
    let read = on.volume.try_read(&file.inode, extent.offset, readable(extent))?;
    record(on, &file, TracedOperation::Read, extent.offset, extent.size.into(), false);
    Some(Ok(ReplyDraft::read(read.bytes)))
}

pub(super) async fn read<P: Platform>(on: &Mount<P>, extent: OpenExtent) -> Outcome {
    let file = on.opened(extent.fh)?;
    record(on, &file, TracedOperation::Read, extent.offset, extent.size.into(), false);
    let (inode, client) = (&file.inode, Some(&file.client));
    let read = on.volume.read_by(&on.own, client, inode, extent.offset, readable(extent)).await?;
    Ok(ReplyDraft::read(read.bytes))
}

/// Refuses bytes past the largest offset of a file.
fn check_end(extent: OpenExtent) -> Result<(), Errno> {
    match extent.offset.checked_add(extent.size.into()) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(VolumeError::TooLarge.into()),
    }
}

fn written(bytes: usize) -> ReplyDraft {
    let mut answer = ReplyDraft::empty();
    answer.head.u32(bytes as u32);
    answer.head.u32(0);
    answer
}

/// An append is not tried: a beginning that was written would move the end before the call is carried out.
pub(super) fn try_write<P: Platform>(on: &Mount<P>, extent: OpenExtent, data: &[u8], append: bool) -> Option<Outcome> {
    if append {
        return None;
    }
    let file = match check_end(extent).and_then(|()| on.opened(extent.fh)) {
        Ok(file) => file,
        Err(errno) => return Some(Err(errno)),
    };
    on.volume.try_write(&on.own, &file.inode, extent.offset, data)?;
    record(on, &file, TracedOperation::Write, extent.offset, data.len() as u64, false);
    Some(Ok(written(data.len())))
}

/// The flags of a WRITE, as in [`FuseOperation::Write`](crate::request::FuseOperation::Write).
#[derive(Clone, Copy)]
pub(super) struct WriteHow {
    pub(super) append: bool,
    pub(super) synchronous: bool,
    pub(super) is_kernels: bool,
}

pub(super) async fn write<P: Platform>(
    on: &Mount<P>,
    header: &RequestHeader,
    mut extent: OpenExtent,
    data: &[u8],
    WriteHow { append, synchronous, is_kernels }: WriteHow,
) -> Outcome {
    let file = on.opened(extent.fh)?;
    if !append {
        if !is_kernels {
            drop_before(on, file.node, &file.inode, extent.offset).await;
        }
        return write_at(on, &file, extent.offset, data, synchronous).await;
    }
    // Others may have made the file longer since the kernel looked.
    let end = on.volume.attributes(&file.inode).await?.size;
    let change = on.begin_change(header, end, 0)?;
    // The bytes of an earlier server's try may have moved the end already.
    extent.offset = if let Before::Begun { value, .. } = change.before { value } else { end };
    let outcome = match check_end(extent) {
        Ok(()) => write_at(on, &file, extent.offset, data, synchronous).await,
        Err(errno) => Err(errno),
    };
    match outcome {
        // Until the kernel has the answer: a repetition writes the same bytes to the same offset.
        Ok(_) => change.stays_begun(),
        Err(_) => change.forget(),
    }
    outcome
}

async fn write_at<P: Platform>(
    on: &Mount<P>,
    file: &OpenFile<P>,
    offset: u64,
    data: &[u8],
    synchronous: bool,
) -> Outcome {
    record(on, file, TracedOperation::Write, offset, data.len() as u64, synchronous);
    let bytes = write_fitting(on, file, offset, data).await?;
    if synchronous {
        synchronous::bytes(on, file, offset, bytes as u64).await?;
    }
    Ok(written(bytes))
}

/// Writes the bytes, or those below the largest offset that the host has, as its own file system does. Returns how
/// many.
async fn write_fitting<P: Platform>(
    on: &Mount<P>,
    file: &OpenFile<P>,
    offset: u64,
    data: &[u8],
) -> Result<usize, Errno> {
    let (inode, client) = (&file.inode, Some(&file.client));
    match on.volume.write_by(&on.own, client, inode, offset, data).await.result {
        Err(VolumeError::TooLarge) => {
            let room = on.volume.file_bytes_max(inode).await.saturating_sub(offset);
            let fits = data.get(..room as usize).filter(|fits| !fits.is_empty()).ok_or(VolumeError::TooLarge)?;
            on.volume.write_by(&on.own, client, inode, offset, fits).await.result?;
            Ok(fits.len())
        }
        outcome => Ok(outcome.map(|()| data.len())?),
    }
}

/// COPY_FILE_RANGE: from one open file to another. All of it if the files can share the blocks, otherwise at most as
/// much as a WRITE has: the kernel asks for the rest. It asks no program for FICLONE.
pub(super) async fn copy<P: Platform>(on: &Mount<P>, from: (u64, u64), to: (u64, u64), len: u64) -> Outcome {
    /// The reply has 32 bits.
    const COPIED_BYTES_MAX: u64 = 1 << 31;
    const MOVED_BYTES_MAX: u64 = DATA_BYTES_MAX as u64;
    let (source, target) = (on.opened(from.0)?, on.opened(to.0)?);
    check_end(OpenExtent { fh: to.0, offset: to.1, size: len.min(MOVED_BYTES_MAX) as u32 })?;
    drop_before(on, target.node, &target.inode, to.1).await;
    let sides = [(&source, from.1), (&target, to.1)];
    let [from_side, to_side] = sides.map(|(file, offset)| CloneSide { caller: &on.own, inode: &file.inode, offset });
    let most = len.min(COPIED_BYTES_MAX);
    let bytes = on.volume.copy_by(from_side, to_side, &target.client, most, MOVED_BYTES_MAX).await?;
    record(on, &source, TracedOperation::Read, from.1, bytes, false);
    record(on, &target, TracedOperation::Write, to.1, bytes, false);
    synchronous::range(on, &target, to.1, bytes).await?;
    Ok(written(bytes as usize))
}

/// LSEEK: where the file has data or a hole. The kernel does the other kinds of lseek(2) itself.
pub(super) async fn seek<P: Platform>(on: &Mount<P>, fh: u64, offset: u64, whence: u32) -> Outcome {
    let wanted = match whence {
        seek::DATA => Seek::Data,
        seek::HOLE => Seek::Hole,
        _ => return Err(Errno::INVALID),
    };
    let found = on.volume.seek_by(&on.own, &on.opened(fh)?.inode, offset, wanted).await?;
    let mut answer = ReplyDraft::empty();
    answer.head.u64(found);
    Ok(answer)
}

/// FALLOCATE: space for a range, zeros or a hole. Ranges are never moved.
pub(super) async fn allocate<P: Platform>(on: &Mount<P>, fh: u64, offset: u64, len: u64, mode: u32) -> Outcome {
    let file = on.opened(fh)?;
    let grows = mode & falloc::KEEP_SIZE == 0;
    let range = offset..offset.checked_add(len).ok_or(VolumeError::TooLarge)?;
    let (own, inode) = (&on.own, &file.inode);
    if grows {
        drop_before(on, file.node, inode, range.end).await;
    }
    let outcome = match mode & !falloc::KEEP_SIZE {
        0 => on.volume.reserve_by(own, inode, range, Reserve { zeros: false, grows }).await,
        falloc::ZERO_RANGE => on.volume.reserve_by(own, inode, range, Reserve { zeros: true, grows }).await,
        falloc::PUNCH_HOLE if !grows => on.volume.punch_by(own, inode, range).await,
        _ => return Err(Errno::NOT_SUPPORTED),
    };
    outcome.result?;
    synchronous::range(on, &file, offset, len).await?;
    Ok(ReplyDraft::empty())
}

/// Reports an error of earlier writes that is stored. `None` if bytes must be written first, since a limit may refuse
/// them.
pub(super) fn try_flush<P: Platform>(on: &Mount<P>, fh: u64) -> Option<Outcome> {
    let must_write = on.opened(fh).is_ok_and(|file| on.volume.may_be_refused(&file.inode));
    (!must_write).then(|| pending_error(on, fh))
}

/// Writes the file's bytes, and reports an error of that.
pub(super) async fn flush<P: Platform>(on: &Mount<P>, fh: u64) -> Outcome {
    let file = on.opened(fh)?;
    on.volume.commit_by(&on.own, Some(&file.client), &file.inode, 0, 0).await.result?;
    pending_error(on, fh)
}

fn pending_error<P: Platform>(on: &Mount<P>, fh: u64) -> Outcome {
    let file = on.opened(fh)?;
    match on.volume.pending_error(&file.inode) {
        Some(error) => Err(error.into()),
        None if file.owes_error.load(Ordering::Acquire) => Err(Errno::IO),
        None => Ok(ReplyDraft::empty()),
    }
}

pub(super) async fn sync<P: Platform>(on: &Mount<P>, header: &RequestHeader, fh: u64, data_only: bool) -> Outcome {
    let file = on.opened(fh)?;
    record(on, &file, TracedOperation::Sync, 0, 0, false);
    on.volume.commit_by(&on.own, Some(&file.client), &file.inode, 0, 0).await.result?;
    if !data_only {
        synchronous::object(on, file.node, &file.inode).await?;
    }
    on.tell_loss(header, fh, &file)?;
    Ok(ReplyDraft::empty())
}

pub(super) async fn sync_directory<P: Platform>(on: &Mount<P>, fh: u64) -> Outcome {
    let opened = on.opened(fh)?;
    synchronous::object(on, opened.node, &opened.inode).await?;
    Ok(ReplyDraft::empty())
}

/// Has the kernel drop the file's last page if a change makes bytes after the end part of the file, up to `until`. The
/// change itself writes those from there on.
pub(super) async fn drop_before<P: Platform>(on: &Mount<P>, node: u64, inode: &Inode<P>, until: u64) {
    let end = inode.size();
    let in_page = end % PAGE_BYTES as u64;
    if until <= end || in_page == 0 || !on.may_be_stored(node) {
        return;
    }
    let Some(notice) = on.notices.note_page(inode.device().0, node, end - in_page) else { return };
    let platform = on.volume.engine().platform();
    let patience = platform.sleep_until(platform.now().after(DROP_PATIENCE_NS));
    // A box: few calls come here, and every call would otherwise reserve memory for the largest future.
    Box::pin(async move {
        select(pin!(notice.ended()), pin!(patience)).await;
    })
    .await;
}
