//! A file with a position, for code that uses `std::io`.
//!
//! Owns: the position.
//! Does not own: the file.
//! Invariants: every stream has its own position; `flush` makes nothing durable, as for a `std::fs::File`.

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};

use crate::error::Error;
use crate::file::File;

/// A reader and writer over a [`File`], with a position of its own: see [`File::stream`].
///
/// ```
/// use std::io::{Read, Seek, Write};
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
/// let mut stream = cache.create(place.path().join("text"))?.stream();
/// writeln!(stream, "one line")?;
/// stream.rewind()?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text)?;
/// assert_eq!(text, "one line\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    file: File,
    position: u64,
}

impl File {
    /// A reader and writer of the standard library's kind, at the file's beginning, with a position of its own.
    pub fn stream(&self) -> Stream {
        Stream { file: self.clone(), position: 0 }
    }
}

impl Stream {
    /// File that the stream reads or writes.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file back.
    pub fn into_file(self) -> File {
        self.file
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.position)?;
        self.position += count as u64;
        Ok(count)
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = self.file.read_vectored_at(into, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.file.write_at(from, self.position)?;
        self.position += from.len() as u64;
        Ok(from.len())
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.write_vectored_at(from, self.position)?;
        let count = from.iter().map(|slice| slice.len()).sum();
        self.position += count as u64;
        Ok(count)
    }

    /// Written bytes are in the cache already; [`File::sync_data`] makes them durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => self.file.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let what = "a position before the file's beginning, or above the largest offset";
        let refused = || Error::Setting { what: what.to_owned() };
        let to = to.filter(|to| *to <= i64::MAX as u64).ok_or_else(refused)?;
        self.position = to;
        Ok(to)
    }
}

/// As for a [`std::fs::File`], so that generic code accepts a file of the cache.
impl std::os::unix::fs::FileExt for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        File::read_at(self, into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        File::write_at(self, from, offset)?;
        Ok(from.len())
    }
}
