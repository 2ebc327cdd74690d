//! Reading into several buffers, writing from several.
//!
//! Owns: the public calls.
//! Does not own: the work (the engine), which takes one buffer after the other.
//! Invariants: the bytes are those of the buffers joined, in the file's order.

use std::io::{self, IoSlice, IoSliceMut};

use super::File;
use crate::error::Error;

impl File {
    /// Fills buffers one after the other from `offset` on. Returns the number of bytes: fewer than they hold only at
    /// the file's end.
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub fn read_vectored_at(&self, into: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.may_read()?;
        self.end_of(offset, total(into.iter().map(|slice| slice.len()))?)?;
        let mut done = 0;
        for slice in into {
            let count = self.read_at(slice, offset + done as u64)?;
            done += count;
            if count < slice.len() {
                break;
            }
        }
        Ok(done)
    }

    /// [`File::read_vectored_at`], awaited. If it is dropped, the effect is that of [`File::read_at_async`].
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub async fn read_vectored_at_async(&self, into: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        self.may_read()?;
        self.end_of(offset, total(into.iter().map(|slice| slice.len()))?)?;
        let mut done = 0;
        for slice in into {
            let count = self.read_at_async(slice, offset + done as u64).await?;
            done += count;
            if count < slice.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Writes buffers one after the other at `offset`.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub fn write_vectored_at(&self, from: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.may_write()?;
        self.end_of(offset, total(from.iter().map(|slice| slice.len()))?)?;
        let mut at = offset;
        for slice in from {
            self.write_at(slice, at)?;
            at += slice.len() as u64;
        }
        Ok(())
    }

    /// [`File::write_vectored_at`], awaited. If it is dropped, the effect is that of [`File::write_at_async`].
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub async fn write_vectored_at_async(&self, from: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.may_write()?;
        self.end_of(offset, total(from.iter().map(|slice| slice.len()))?)?;
        let mut at = offset;
        for slice in from {
            self.write_at_async(slice, at).await?;
            at += slice.len() as u64;
        }
        Ok(())
    }

    /// Appends buffers, as one append. Returns the offset of the first.
    ///
    /// # Errors
    /// As [`File::append`].
    pub fn append_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<u64> {
        self.may_write()?;
        self.block(self.append_all(from))
    }

    /// [`File::append_vectored`], awaited. If it is dropped, the effect is that of [`File::append_async`].
    ///
    /// # Errors
    /// As [`File::append`].
    pub async fn append_vectored_async(&self, from: &[IoSlice<'_>]) -> io::Result<u64> {
        self.may_write()?;
        self.pass(self.append_all(from)).await
    }

    async fn append_all(&self, from: &[IoSlice<'_>]) -> Result<u64, Error> {
        let _turn = self.0.file.tail.turn().await;
        let offset = self.len();
        let mut at = offset;
        for slice in from {
            self.end_of(at, slice.len())?;
            self.write_work(slice, at).await?;
            at += slice.len() as u64;
        }
        Ok(offset)
    }
}

/// The sum of the lengths; an error if it overflows.
fn total(lens: impl Iterator<Item = usize>) -> io::Result<usize> {
    let what = "the buffers together are longer than any file";
    let sum = lens.into_iter().try_fold(0_usize, usize::checked_add);
    sum.ok_or_else(|| Error::Setting { what: what.to_owned() }.into())
}
