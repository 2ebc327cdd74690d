//! Numbers in stored bytes.
//!
//! Owns: taking big-endian numbers from the front of a slice.
//! Does not own: their ranges.
//! Invariants: a caller has checked the length of the whole; a short slice is a bug here and panics.

/// The fields of bytes whose length was checked.
pub(crate) struct FieldBytes<'a>(pub(crate) &'a [u8]);

impl<'a> FieldBytes<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk::<N>().expect("the caller checked the length");
        self.0 = rest;
        *first
    }

    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_be_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}
