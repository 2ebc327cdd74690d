//! The formats of what is stored.
//!
//! Owns: names and bytes of segments, keys and values of records; here errors in stored bytes, and numbers taken from
//! the front of a slice.
//! Does not own: the time at which either is written, errors of the store.
//! Invariants: numbers are big-endian. Each decoder accepts exactly the bytes that its encoder makes. An error names
//! the field, the value and the permitted values. A caller has checked the length of the whole before it takes a
//! number; a short slice is a bug here and panics.

pub(crate) mod acl;
pub(crate) mod compression;
pub(crate) mod extent;
pub(crate) mod line;
pub(crate) mod records;
pub(crate) mod segment;
pub(crate) mod tree;

/// Stored bytes that no version of this format writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// An object in the folder of segments has another name.
    #[error("{name:?} is no name of a segment: data/NN/EEEEEE-NNNNNNNNNN in hex, NN being the number's last byte")]
    Name {
        /// The object's name.
        name: String,
    },
    /// A length is wrong.
    #[error("{field} has {found} bytes instead of {least} to {most}")]
    Length {
        /// The malformed part.
        field: &'static str,
        /// Length of the record in bytes.
        found: usize,
        /// The smallest permitted length.
        least: usize,
        /// The largest permitted length.
        most: usize,
    },
    /// A number is out of its range.
    #[error("{field} is {value} instead of {least} to {most}")]
    Range {
        /// The malformed part.
        field: &'static str,
        /// Value that the record has.
        value: u64,
        /// The smallest permitted value.
        least: u64,
        /// The largest permitted value.
        most: u64,
    },
    /// The first bytes are not the format's.
    #[error("{field} begins with {found:02x?} instead of {expected:02x?}")]
    Magic {
        /// The malformed part.
        field: &'static str,
        /// Its first bytes.
        found: [u8; 8],
        /// First bytes of the known form.
        expected: [u8; 8],
    },
    /// Bytes do not match their checksum.
    #[error("{field} at {offset} has the checksum {stored:08x}, its bytes have {computed:08x}")]
    Checksum {
        /// The damaged part.
        field: &'static str,
        /// Its offset in the object.
        offset: u64,
        /// The checksum that is stored.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A line does not decompress to its length, though its checksum is right.
    #[error("the line at {offset} does not decompress to {length} bytes")]
    Compressed {
        /// Its offset in the object.
        offset: u64,
        /// The bytes that it has in its run.
        length: u32,
    },
    /// The holder is no epoch with a host.
    #[error("the object `holder` is {found:?} instead of an epoch, a space, and a host of 1 to 255 bytes")]
    Holder {
        /// Its first bytes.
        found: String,
    },
    /// The list of clients is none.
    #[error(
        "the object `clients` is no list of clients of NFS version 4. Without it they may lose locks to others: bring it \
         back from a copy, or remove it once these clients have unmounted"
    )]
    PreviousClients,
    /// A feature of a newer version is in use.
    #[error("the volume uses the features {found:#x}; this version knows {known:#x}")]
    Features {
        /// The features in use.
        found: u64,
        /// The known ones.
        known: u64,
    },
}

/// Checks that a number is in its range.
pub(crate) fn in_range(field: &'static str, value: u64, least: u64, most: u64) -> Result<u64, FormatError> {
    if (least..=most).contains(&value) { Ok(value) } else { Err(FormatError::Range { field, value, least, most }) }
}

/// Checks that a part has exactly `expected` bytes.
pub(crate) fn exactly(field: &'static str, bytes: &[u8], expected: usize) -> Result<(), FormatError> {
    let found = bytes.len();
    if found == expected { Ok(()) } else { Err(FormatError::Length { field, found, least: expected, most: expected }) }
}

/// Checks that a part has at least so many bytes.
pub(crate) fn at_least(field: &'static str, found: usize, least: usize) -> Result<(), FormatError> {
    if found >= least { Ok(()) } else { Err(FormatError::Length { field, found, least, most: usize::MAX }) }
}

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

#[cfg(test)]
mod tests;
