//! Which bytes reach the disk, and in which order.
//!
//! Owns: the calls that withhold and order bytes.
//! Does not own: the withheld bytes and their order (`afflux`).
//! Invariants: withheld bytes stay off the disk until their handle is given back.

use std::ffi::c_int;

use afflux::Withheld;

use crate::border::status;
use crate::file::{FileHandle, on_file};
use crate::handle::HandleTable;
use crate::memory::Out;

static WITHHELD: HandleTable<Withheld> = HandleTable::new(5, "withheld bytes");

/// Bytes of a file that stay off the disk until they are let go.
pub struct WithheldHandle {
    _private: [u8; 0],
}

/// Keeps `len` bytes from `offset` on off the disk until afflux_let_go(): unwritten ones, and ones that are written
/// later. The range is widened to whole pages of 4 KiB, and may reach past the file's end. Readers of the cache see the
/// bytes as ever. Waits for syncs that began earlier.
///
/// Until then every sync of these bytes, and the close of the file, fail with AFFLUX_ERROR_BUSY. Withheld bytes may
/// take a quarter of the disk's part of the dirty limit, and a write of more fails with AFFLUX_ERROR_QUOTA. This call
/// fails so if 4,096 ranges of the file are withheld.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afflux_withhold(
    file: *mut FileHandle,
    offset: u64,
    len: u64,
    withheld: *mut *mut WithheldHandle,
) -> c_int {
    status(|| {
        on_file(file, |file| {
            // SAFETY: the caller's promise.
            let place = unsafe { Out::new(withheld, "the place for the withheld bytes") }?;
            place.put(WITHHELD.open(file.withhold(offset..offset.saturating_add(len))?)?);
            Ok(())
        })
    })
}

/// Lets go of withheld bytes, and gives the handle back. From now on the cache writes them as any others, unless
/// another handle withholds them, too.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_let_go(withheld: *mut WithheldHandle) -> c_int {
    status(|| WITHHELD.close(withheld).map(drop))
}

/// Orders `len` bytes from `offset` on after `earlier_len` bytes of `first`, another file or the same, from
/// `earlier_offset` on. The later bytes, unwritten ones and ones that are written later, go to the disk only after all
/// bytes that were written to the earlier range before this call are durable. Both ranges are widened to whole pages.
///
/// So a log comes before the data that it describes, without a sync for each change: append the record, call this,
/// write the data. A sync of the data syncs the log first. Fails with -EDEADLK if the earlier bytes wait for the later
/// ones.
#[unsafe(no_mangle)]
pub extern "C" fn afflux_order_after(
    file: *mut FileHandle,
    offset: u64,
    len: u64,
    first: *mut FileHandle,
    earlier_offset: u64,
    earlier_len: u64,
) -> c_int {
    status(|| {
        on_file(file, |file| {
            on_file(first, |first| {
                let earlier = earlier_offset..earlier_offset.saturating_add(earlier_len);
                Ok(file.order_after(offset..offset.saturating_add(len), first, earlier)?)
            })
        })
    })
}
