//! Fields of messages: fixed-size numbers in the machine's own byte order, and names that end with a NUL.
//!
//! Owns: the check of every length.
//! Does not own: the meaning of a field.
//! Invariants: reading allocates nothing and never panics, for any bytes.

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// The message ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A name has no end.
    #[error("a name has no NUL at its end")]
    Unended,
}

/// Reads fields in order.
pub(crate) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_ne_bytes(self.fixed()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_ne_bytes(self.fixed()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_ne_bytes(self.fixed()?))
    }

    /// The bytes before the next NUL, which is taken, too.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], WireError> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(WireError::Unended)?;
        let name = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(name)
    }

    /// Everything that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Fields that can be appended.
pub(crate) trait Put {
    fn raw(&mut self, bytes: &[u8]);

    fn u16(&mut self, value: u16) {
        self.raw(&value.to_ne_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.raw(&value.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.raw(&value.to_ne_bytes());
    }
}

impl Put for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
