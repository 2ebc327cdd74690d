//! The one routine that copies to and from frames.
//!
//! Owns: the copy. Does not own: the right to copy (pins, `page`).
//! Invariants: a reader and a writer of the same bytes may run at once; the reader then sees any mix of old and new
//! bytes, and nothing else happens. Ordinary Rust loads and stores would make that undefined, so the bytes are moved by
//! code that the compiler does not look into.

#[cfg(all(target_arch = "x86_64", not(afflux_portable_copy)))]
unsafe extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8;
    fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8;
}

/// Copies `len` bytes between memory that does not overlap, tolerating concurrent copies.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and the two ranges do not overlap. One range may be frame
/// memory that other threads use through this function at the same time.
#[inline]
pub(crate) unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(afflux_portable_copy)))]
    // SAFETY: the caller vouches for both ranges; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "call {copy}",
            copy = sym memcpy,
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rdx") len => _,
            clobber_abi("C"),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(afflux_portable_copy))))]
    // SAFETY: the caller vouches for both ranges; atomic bytes make the race defined.
    unsafe {
        use std::sync::atomic::{AtomicU8, Ordering};
        for at in 0..len {
            let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed);
            AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed);
        }
    }
}

/// As [`copy_bytes`], for calls in which `len` is mostly a stamp's: such a copy takes one load and one store.
///
/// # Safety
/// As for [`copy_bytes`].
#[inline]
pub(crate) unsafe fn copy_backed(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(afflux_portable_copy)))]
    if len == afflux_frames::STAMP_BYTES {
        // SAFETY: the caller vouches for 16 bytes at both addresses; neither has to be aligned.
        unsafe {
            std::arch::asm!(
                "movups {bytes}, [{from}]",
                "movups [{to}], {bytes}",
                bytes = out(xmm_reg) _,
                from = in(reg) from,
                to = in(reg) to,
                options(nostack, preserves_flags),
            );
        }
        return;
    }
    // SAFETY: the caller vouches for both ranges.
    unsafe { copy_bytes(from, to, len) };
}

/// Asks for the first half of a frame that a copy will fill; the processor fetches the rest by itself once the copy
/// runs. A frame unused for long is in no cache, and a thread that changes its record after the copy waits for the
/// whole copy.
#[inline]
pub(crate) fn prefetch_to_fill(to: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(afflux_portable_copy)))]
    for line in 0..afflux_frames::FRAME_BYTES / 64 / 2 {
        // SAFETY: a prefetch of any address has no observable effect. The standard library's prefetch becomes one for
        // reading, unless the processor is named.
        unsafe {
            std::arch::asm!(
                "prefetchw [{line}]",
                line = in(reg) to.wrapping_add(64 * line),
                options(nostack, preserves_flags, readonly),
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(afflux_portable_copy))))]
    let _ = to;
}

/// Zeroes `len` bytes of frame memory, tolerating concurrent copies.
///
/// # Safety
/// As for [`copy_bytes`], for the one range.
#[inline]
pub(crate) unsafe fn zero_bytes(to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(afflux_portable_copy)))]
    // SAFETY: the caller vouches for the range; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "call {set}",
            set = sym memset,
            inout("rdi") to => _,
            inout("rsi") 0 => _,
            inout("rdx") len => _,
            clobber_abi("C"),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(afflux_portable_copy))))]
    // SAFETY: the caller vouches for the range; atomic bytes make the race defined.
    unsafe {
        use std::sync::atomic::{AtomicU8, Ordering};
        for at in 0..len {
            AtomicU8::from_ptr(to.add(at)).store(0, Ordering::Relaxed);
        }
    }
}
