//! Reading into several buffers, writing from several.
//!
//! Owns: the public calls.
//! Does not own: the work (the engine), which takes one buffer after the other.
//! Invariants: the bytes are those of the buffers joined, in the file's order.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::pin;

use super::File;
use crate::error::Error;

impl File {
    /// Fills buffers one after the other from `offset` on. Returns the number of bytes: fewer than they hold only at
    /// the file's end.
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub fn read_vectored_at(&self, into: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let (done, left) = self.read_hits(into, offset)?;
        if left.is_empty() {
            Ok(done)
        } else {
            Ok(done + self.block(pin!(self.read_slices(left, offset + done as u64)))?)
        }
    }

    /// [`File::read_vectored_at`], awaited. If it is dropped, the effect is that of [`File::read_at_async`].
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub async fn read_vectored_at_async(&self, into: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let (done, left) = self.read_hits(into, offset)?;
        if left.is_empty() {
            Ok(done)
        } else {
            Ok(done + self.pass(pin!(self.read_slices(left, offset + done as u64))).await?)
        }
    }

    /// Fills buffers from the cache. Returns the number of bytes, and the buffers from the first one on that has to
    /// wait.
    fn read_hits<'a, 'b>(
        &self,
        into: &'a mut [IoSliceMut<'b>],
        offset: u64,
    ) -> Result<(usize, &'a mut [IoSliceMut<'b>]), Error> {
        self.check_readable()?;
        self.end_of(offset, total(into.iter().map(|slice| slice.len()))?)?;
        let mut done = 0;
        for at in 0..into.len() {
            let Some(count) = self.0.engine.try_read(&self.0.pages, offset + done as u64, &mut into[at]) else {
                return Ok((done, &mut into[at..]));
            };
            done += count;
            if count < into[at].len() {
                break;
            }
        }
        Ok((done, &mut []))
    }

    async fn read_slices(&self, into: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize, Error> {
        let mut done = 0;
        for slice in into {
            let count = self.read_work(slice, offset + done as u64).await?;
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
        let (done, left) = self.write_hits(from, offset)?;
        if left.is_empty() { Ok(()) } else { self.block(pin!(self.write_slices(left, offset + done))) }
    }

    /// [`File::write_vectored_at`], awaited. If it is dropped, the effect is that of [`File::write_at_async`].
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub async fn write_vectored_at_async(&self, from: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let (done, left) = self.write_hits(from, offset)?;
        if left.is_empty() { Ok(()) } else { self.pass(pin!(self.write_slices(left, offset + done))).await }
    }

    /// Overwrites dirty bytes in the cache. Returns the number of bytes, and the buffers from the first one on that has
    /// to wait.
    fn write_hits<'a, 'b>(&self, from: &'a [IoSlice<'b>], offset: u64) -> Result<(u64, &'a [IoSlice<'b>]), Error> {
        self.check_writable()?;
        self.end_of(offset, total(from.iter().map(|slice| slice.len()))?)?;
        let mut done = 0;
        for (at, slice) in from.iter().enumerate() {
            if self.0.engine.overwrite(&self.0.pages, offset + done, slice) < slice.len() {
                return Ok((done, &from[at..]));
            }
            done += slice.len() as u64;
        }
        Ok((done, &[]))
    }

    async fn write_slices(&self, from: &[IoSlice<'_>], mut offset: u64) -> Result<(), Error> {
        for slice in from {
            self.end_of(offset, slice.len())?;
            self.write_work(slice, offset).await?;
            offset += slice.len() as u64;
        }
        Ok(())
    }

    /// Appends buffers, as one append. Returns the offset of the first.
    ///
    /// # Errors
    /// As [`File::append`].
    pub fn append_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<u64> {
        self.block(pin!(self.append_work(from)))
    }

    /// [`File::append_vectored`], awaited. If it is dropped, the effect is that of [`File::append_async`].
    ///
    /// # Errors
    /// As [`File::append`].
    pub async fn append_vectored_async(&self, from: &[IoSlice<'_>]) -> io::Result<u64> {
        self.pass(pin!(self.append_work(from))).await
    }

    pub(super) async fn append_work(&self, from: &[IoSlice<'_>]) -> Result<u64, Error> {
        self.check_writable()?;
        let _turn = self.0.file.tail.enter().await;
        let offset = self.len();
        self.write_slices(from, offset).await?;
        Ok(offset)
    }
}

/// The sum of the lengths; an error if it overflows.
fn total(lens: impl Iterator<Item = usize>) -> Result<usize, Error> {
    let what = "the buffers together are longer than any file";
    let sum = lens.into_iter().try_fold(0_usize, usize::checked_add);
    sum.ok_or_else(|| Error::Setting { what: what.to_owned() })
}
