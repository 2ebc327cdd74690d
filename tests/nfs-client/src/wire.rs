//! Fields one after the other, in XDR: for version 4 and for the heads of records.
//!
//! Owns: the encoding and decoding of fields.
//! Does not own: the meaning of fields.
//! Invariants: decoding checks every length against the bytes present.

const ENDS: &str = "it ends inside a field";

/// A reply's bytes violate the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed reply: {what}")]
pub struct Malformed {
    /// The field, and the error.
    pub what: &'static str,
}

impl From<nfs3_types::xdr_codec::Error> for Malformed {
    fn from(error: nfs3_types::xdr_codec::Error) -> Self {
        Self { what: if matches!(error, nfs3_types::xdr_codec::Error::Io(_)) { ENDS } else { "an impossible value" } }
    }
}

/// A stateid: its sequence number and its other bytes.
pub type Stateid = (u32, [u8; 12]);

/// Arguments under construction.
#[derive(Clone, Debug, Default)]
pub struct Fields(pub Vec<u8>);

#[allow(missing_docs, reason = "each adds a field of the type of its name")]
impl Fields {
    #[must_use]
    pub fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    #[must_use]
    pub fn opaque(mut self, bytes: &[u8]) -> Self {
        self.0.extend((bytes.len() as u32).to_be_bytes());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// Results being decoded.
pub(crate) struct Results<'a>(pub(crate) &'a [u8]);

impl<'a> Results<'a> {
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed { what: ENDS })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.fixed()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.fixed()?))
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed { what: "a boolean that is neither 0 nor 1" }),
        }
    }

    pub(crate) fn opaque(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()? as usize;
        let bytes = self.take(len)?;
        let padding = self.take(len.wrapping_neg() & 3)?;
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Malformed { what: "padding that is not zero" });
        }
        Ok(bytes)
    }

    /// Checks that everything has been read.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed { what: "bytes after the last field" }) }
    }
}
