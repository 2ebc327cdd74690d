//! Writing found files home without an engine, for a successor that cannot work with what it found.
//!
//! Owns: which bytes of a found file go home, and the order of its steps.
//! Does not own: the host's file (`RescuedFile`), the rules about records (`look`), the moment of a rescue.
//! Invariants: nothing in the memory changes, so that a kill during a rescue is one more kill. A file is home when its
//! sync has succeeded. Bytes past the size that clients know stay behind.

use std::ops::Range;

use afflux_frames::{FRAME_BYTES, Frames};
use afflux_pages::page::SECTOR_BYTES;
use afflux_pages::units::PAGE_BYTES;

use super::found::Recovered;
use super::look::FoundPage;
use super::slots::{FileKey, Intent};

/// A file of the host that takes what was found of it. Each call may block.
pub trait RescuedFile {
    /// The host's refusal.
    type Error;

    /// Writes all of the bytes.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Sets the size.
    fn set_size(&mut self, size: u64) -> Result<(), Self::Error>;

    /// Makes everything durable that was written so far, by whichever process.
    fn sync(&mut self) -> Result<(), Self::Error>;
}

impl Recovered {
    /// Whether the file has dirty pages or an unfinished change of shape.
    pub fn is_owed(&self, key: &FileKey) -> bool {
        self.seen.files.get(key).is_some_and(|file| file.has_unwritten())
    }

    /// Writes a found file home and makes it durable. Returns the number of bytes written. An unfinished change of
    /// shape is carried out; a hole is written as zeros.
    ///
    /// # Errors
    /// The first of the host's. The call can be repeated.
    pub fn write_home<F: RescuedFile>(&self, key: &FileKey, file: &mut F) -> Result<u64, F::Error> {
        let Some(found) = self.seen.files.get(key) else { return Ok(0) };
        let mut written = 0;
        for page in &found.pages {
            let frame = self.memory.frame(page.frame);
            for part in dirty_parts(page, found.size) {
                file.write(page.page * PAGE_BYTES + part.start as u64, &frame[part.clone()])?;
                written += part.len() as u64;
            }
        }
        match &found.intent {
            None => {}
            Some(Intent::Size(size)) => file.set_size(*size)?,
            Some(Intent::Hole(range)) => write_zeros(file, range.start..range.end.min(found.size))?,
        }
        file.sync()?;
        Ok(written)
    }

    /// The memory for a fresh engine, once each file is home. `verifier` is used as by
    /// `Engine::recover`.
    pub fn written(mut self, verifier: u64) -> Frames {
        self.seen.files.clear();
        let memory = std::sync::Arc::clone(&self.memory);
        let frames = self.settle(verifier).0;
        memory.header().set_recoveries(0);
        frames
    }
}

/// The runs of dirty sectors in a page of a file of `size` bytes.
fn dirty_parts(page: &FoundPage, size: u64) -> impl Iterator<Item = Range<usize>> {
    let in_file = size.saturating_sub(page.page * PAGE_BYTES).min(PAGE_BYTES) as usize;
    let sectors: Vec<usize> = page.dirty.iter().collect();
    let runs: Vec<Range<usize>> =
        sectors.chunk_by(|one, next| one + 1 == *next).map(|run| run[0]..run[run.len() - 1] + 1).collect();
    let bytes = move |run: Range<usize>| run.start * SECTOR_BYTES..(run.end * SECTOR_BYTES).min(in_file);
    runs.into_iter().map(bytes).filter(|part| part.start < part.end)
}

fn write_zeros<F: RescuedFile>(file: &mut F, range: Range<u64>) -> Result<(), F::Error> {
    let zeros = [0; FRAME_BYTES];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(zeros.len() as u64);
        file.write(at, &zeros[..len as usize])?;
        at += len;
    }
    Ok(())
}
