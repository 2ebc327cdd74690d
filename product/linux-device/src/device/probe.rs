//! The abilities of a directory's file system: O_DIRECT, its alignment, the largest file, sizes set ahead of writes.
//!
//! Owns: the probing, once, at a device's start.
//! Does not own: single files; a file that refuses O_DIRECT later is read and written buffered.
//! Invariants: leaves nothing behind in the directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use afflux_engine::FILE_BYTES_MAX;
use rustix::fs::{
    AtFlags, Mode, OFlags, SeekFrom, StatxFlags, fstatfs, ioctl_blksszget, openat, seek, statx, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use rustix::process::{Resource, getrlimit};

use crate::clock;

/// How files of a directory are read and written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Past the host's page cache, in multiples of `block_bytes`, from memory aligned to
    /// `memory_align`.
    Direct { block_bytes: u32, memory_align: u32 },
    /// Through the host's page cache.
    Buffered { reason: String },
}

/// The strictest alignment that a device may ask of us: our pages are aligned to it.
const ALIGN_MAX: u32 = 4096;
const ALIGN_MIN: u32 = 512;
const EXT4: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;

#[repr(align(4096))]
struct Aligned([u8; ALIGN_MAX as usize]);

/// Finds out how the files in `directory` can be read and written.
pub(super) fn access(directory: BorrowedFd<'_>) -> Access {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let buffered = |reason: String| Access::Buffered { reason };
    match fstatfs(directory).map(|stat| stat.f_type as u64) {
        Ok(TMPFS | RAMFS) => return buffered("the file system is in memory".to_owned()),
        Ok(_) => {}
        Err(error) => return buffered(format!("the file system cannot be asked: {error}")),
    }
    let file = match scratch_file(directory, OFlags::DIRECT) {
        Ok(file) => file,
        Err(Errno::INVAL) => return buffered("O_DIRECT is refused".to_owned()),
        // A read-only directory allows no trial. Reading in whole pages suits every device that we could use at all,
        // and a file that refuses O_DIRECT is read buffered.
        Err(_) => return Access::Direct { block_bytes: ALIGN_MAX, memory_align: ALIGN_MAX },
    };
    if let Some((offset_align, memory_align)) = reported_alignment(file.as_fd()) {
        if offset_align == 0 || memory_align == 0 {
            return buffered("O_DIRECT is refused".to_owned());
        }
        if offset_align > ALIGN_MAX || memory_align > ALIGN_MAX {
            return buffered(format!("O_DIRECT wants an alignment of {}", offset_align.max(memory_align)));
        }
        return Access::Direct { block_bytes: offset_align.max(ALIGN_MIN), memory_align };
    }
    for block_bytes in [ALIGN_MIN, ALIGN_MAX] {
        if can_transfer(file.as_fd(), block_bytes as usize) {
            return Access::Direct { block_bytes, memory_align: block_bytes };
        }
    }
    buffered("O_DIRECT is refused".to_owned())
}

/// How a block device is read and written: in its logical blocks. A device with blocks larger than a page, or of
/// unknown size, goes through the host's page cache.
pub(super) fn block_device_access(device: BorrowedFd<'_>) -> Access {
    match ioctl_blksszget(device) {
        Ok(block @ ALIGN_MIN..=ALIGN_MAX) => Access::Direct { block_bytes: block, memory_align: block },
        Ok(block) => Access::Buffered { reason: format!("its blocks are of {block} bytes") },
        Err(error) => Access::Buffered { reason: format!("it does not tell its blocks: {error}") },
    }
}

/// Whether files of this file system are made longer ahead of writes. True for file systems on which extending writes
/// were measured to be slow, and on which the early extension writes no bytes.
pub(super) fn may_grow_files(directory: BorrowedFd<'_>) -> bool {
    matches!(fstatfs(directory).map(|stat| stat.f_type as u64), Ok(EXT4 | XFS))
}

/// Whether a refused write that makes a file longer frees all space that is reserved beyond the file's end, on this
/// file system. The host refuses such a write where it divides reserved space, and finds no block for its longer list
/// of extents. Quotas count such blocks, and a reservation does not cover them.
pub(super) fn does_free_reserved(directory: BorrowedFd<'_>) -> bool {
    matches!(fstatfs(directory).map(|stat| stat.f_type as u64), Ok(EXT4))
}

/// Whether small files of this file system may be written through its page cache and dropped from it at once. True for
/// file systems on which this was measured to be faster. The first write finds out whether the kernel supports it.
pub(super) fn may_write_uncached(directory: BorrowedFd<'_>) -> bool {
    matches!(fstatfs(directory).map(|stat| stat.f_type as u64), Ok(EXT4 | XFS))
}

/// Whether files are written in place here: a write to bytes with blocks of their own takes no further block. At a
/// limit, XFS may still refuse to reserve such bytes. Ext4 refuses those that wait in the page cache for their blocks.
pub(super) fn is_written_in_place(directory: BorrowedFd<'_>) -> bool {
    matches!(fstatfs(directory).map(|stat| stat.f_type as u64), Ok(EXT4 | XFS))
}

/// Whether files of this file system may share blocks, which a reservation can end. A write to a shared block takes a
/// new one.
pub(super) fn may_unshare(directory: BorrowedFd<'_>) -> bool {
    matches!(fstatfs(directory).map(|stat| stat.f_type as u64), Ok(XFS))
}

/// The largest size of a file in `directory`, in whole blocks, since the last block is written whole. It is bounded by
/// the file system and by this process's limit (RLIMIT_FSIZE; its signal would end the process). The bound of a
/// read-only file system stays unknown, which is harmless, since nothing is written there.
pub(super) fn file_bytes_max(directory: BorrowedFd<'_>) -> u64 {
    let kept = scratch_file(directory, OFlags::empty()).map_or(FILE_BYTES_MAX, |file| largest_offset(file.as_fd()));
    let allowed = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    kept.min(allowed) / u64::from(ALIGN_MAX) * u64::from(ALIGN_MAX)
}

/// The largest offset of a file: a seek past the largest size is refused, and a seek costs nothing (a
/// truncation might write zeros).
fn largest_offset(file: BorrowedFd<'_>) -> u64 {
    let takes = |offset: u64| seek(file, SeekFrom::Start(offset)).is_ok();
    if takes(FILE_BYTES_MAX) {
        return FILE_BYTES_MAX;
    }
    let (mut taken, mut refused) = (0, FILE_BYTES_MAX);
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        if takes(middle) {
            taken = middle;
        } else {
            refused = middle;
        }
    }
    taken
}

/// A file with no name, open for reading and writing and with these flags.
fn scratch_file(directory: BorrowedFd<'_>, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | more;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(directory, ".", flags | OFlags::TMPFILE, mode) {
        // An error may mean that the flags or the missing name are refused; only some file systems have files without
        // names.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let name = format!(".afflux-probe-{:016x}", clock::random());
            let file = openat(directory, name.as_str(), flags | OFlags::CREATE | OFlags::EXCL, mode);
            // An open refused for O_DIRECT may have made the file nevertheless.
            let _ = unlinkat(directory, name.as_str(), AtFlags::empty());
            file
        }
        other => other,
    }
}

/// The alignment of offsets and of memory that the kernel reports (since 6.1); 0 means 'no O_DIRECT'.
fn reported_alignment(file: BorrowedFd<'_>) -> Option<(u32, u32)> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN);
    told.then_some((stat.stx_dio_offset_align, stat.stx_dio_mem_align))
}

fn can_transfer(file: BorrowedFd<'_>, block_bytes: usize) -> bool {
    // At an address that is aligned to the block and no better.
    let mut memory = Box::new([Aligned([0; ALIGN_MAX as usize]), Aligned([0; ALIGN_MAX as usize])]);
    let memory = if block_bytes == ALIGN_MAX as usize {
        &mut memory[0].0[..]
    } else {
        &mut memory[1].0[block_bytes..2 * block_bytes]
    };
    pwrite(file, memory, block_bytes as u64).is_ok() && pread(file, memory, block_bytes as u64).is_ok()
}
