//! XDR (RFC 4506), bounded: reading from a received record, writing a reply.
//!
//! Owns: the layout of integers, opaques and strings, and the check of every length.
//! Does not own: the meaning of a field, and the protocol's limits for it.
//! Invariants: a length is checked against the record and against its limit before its use; reading allocates nothing
//! and never panics, for any bytes.

use std::ops::Range;

/// Why bytes are not what a field should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum XdrError {
    /// The record ends inside a field.
    #[error("a field of {wanted} bytes starts at byte {at}, where {left} are left")]
    Truncated {
        /// The field's position.
        at: usize,
        /// The field's length, padding included.
        wanted: usize,
        /// Bytes that remain in the record.
        left: usize,
    },
    /// A length is above what the protocol allows.
    #[error("a length of {len} is above the limit of {max}")]
    TooLong {
        /// The length on the wire.
        len: usize,
        /// Most bytes or items that the field may have.
        max: usize,
    },
    /// An enumeration or a boolean has an invalid value.
    #[error("{value} is not a value of {field}")]
    Value {
        /// The field's name.
        field: &'static str,
        /// The value on the wire.
        value: u32,
    },
}

/// Bytes to add to `len` for a multiple of four.
pub(crate) const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}

/// Bytes on the wire of an opaque of `len` bytes.
pub(crate) const fn opaque_bytes(len: usize) -> usize {
    4 + len + padding(len)
}

/// A handle, a name or data: its position in the record of the call. Of a handle only the length has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    at: u32,
    len: u32,
}

impl From<Range<usize>> for Field {
    fn from(range: Range<usize>) -> Self {
        Self { at: range.start as u32, len: range.len() as u32 }
    }
}

impl Field {
    /// The position of its bytes.
    pub(crate) fn range(self) -> Range<usize> {
        self.at as usize..self.at as usize + self.len as usize
    }
}

/// Reads fields in order from the bytes of a record.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Number of bytes of the record.
    end: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() }
    }

    /// Starts at the byte `at`, which is not past the end.
    #[inline]
    pub(crate) fn starting_at(bytes: &'a [u8], at: usize) -> Self {
        Self { rest: &bytes[at..], end: bytes.len() }
    }

    /// Where the next field starts.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    #[cold]
    fn truncated(&self, wanted: usize) -> XdrError {
        XdrError::Truncated { at: self.position(), wanted, left: self.rest.len() }
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], XdrError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| self.truncated(len))?;
        self.rest = rest;
        Ok(taken)
    }

    /// `N` unsigned 32-bit integers, with one check of the length.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self) -> Result<[u32; N], XdrError> {
        let (bytes, mut words) = (self.take(4 * N)?, [0; N]);
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Ok(words)
    }

    /// Exactly `N` bytes; `N` is a multiple of four.
    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], XdrError> {
        const { assert!(N.is_multiple_of(4)) };
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.truncated(N))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// As [`Reader::opaque`], of any length, and as much as there is of one that the record cuts off. Nothing
    /// can be read after it.
    pub(crate) fn opaque_beginning(&mut self) -> Result<Range<usize>, XdrError> {
        let len = self.u32()? as usize;
        let at = self.position();
        self.take(len.min(self.rest.len()))?;
        Ok(at..self.position())
    }

    /// As [`Reader::opaque`]: the position of its bytes.
    #[inline]
    pub(crate) fn opaque_range(&mut self, max: usize) -> Result<Range<usize>, XdrError> {
        let len = self.u32()? as usize;
        if len > max {
            return Err(XdrError::TooLong { len, max });
        }
        let at = self.position();
        self.skip_opaque(len)?;
        Ok(at..at + len)
    }

    /// Passes the bytes and the padding of an opaque whose length was read.
    #[inline]
    pub(crate) fn skip_opaque(&mut self, len: usize) -> Result<(), XdrError> {
        self.take(len + padding(len)).map(|_| ())
    }

    /// An unsigned 32-bit integer.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, XdrError> {
        Ok(u32::from_be_bytes(self.fixed()?))
    }

    /// An unsigned 64-bit integer.
    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, XdrError> {
        Ok(u64::from_be_bytes(self.fixed()?))
    }

    /// A boolean: 0 or 1, nothing else.
    #[inline]
    pub(crate) fn bool(&mut self, field: &'static str) -> Result<bool, XdrError> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(XdrError::Value { field, value }),
        }
    }

    /// A counted opaque or string of at most `max` bytes; its padding is skipped unchecked.
    #[inline]
    pub(crate) fn opaque(&mut self, max: usize) -> Result<&'a [u8], XdrError> {
        let len = self.u32()? as usize;
        if len > max {
            return Err(XdrError::TooLong { len, max });
        }
        Ok(&self.take(len + padding(len))?[..len])
    }
}

/// Appends fields to a buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer, in a buffer that was used before.
    pub(crate) fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes }
    }

    /// Capacity in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Reserves memory for `capacity` more bytes.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        self.bytes.reserve(capacity);
    }

    /// Number of bytes written.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes as they are; their number is a multiple of four.
    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An unsigned 32-bit integer.
    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// Some of them at once.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self, values: [u32; N]) {
        self.raw(values.map(u32::to_be_bytes).as_flattened());
    }

    /// An unsigned 64-bit integer.
    pub(crate) fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u32(value.into());
    }

    /// A counted opaque or string, padded.
    ///
    /// # Panics
    /// When `bytes` are 4 GiB or more; the limits of the protocol are far below.
    pub(crate) fn opaque(&mut self, bytes: &[u8]) {
        assert!(bytes.len() < u32::MAX as usize);
        self.u32(bytes.len() as u32);
        self.raw(bytes);
        self.pad(bytes.len());
    }

    /// Writes the padding after `len` bytes of an opaque.
    pub(crate) fn pad(&mut self, len: usize) {
        self.raw(&[0; 3][..padding(len)]);
    }

    /// Overwrites four bytes written before.
    pub(crate) fn patch_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// The bytes written from `at` on.
    pub(crate) fn since(&self, at: usize) -> &[u8] {
        &self.bytes[at..]
    }

    /// The bytes written from `from` to `to`.
    pub(crate) fn between(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[from..to]
    }

    /// Drops everything after the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

#[cfg(test)]
mod tests;
