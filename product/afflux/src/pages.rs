//! Bytes of a file, shown in the cache.
//!
//! Owns: the public guard, a copy if pages cannot be held.
//! Does not own: the pages (the engine's guard).
//! Invariants: the bytes do not change while the guard lives.

use std::fmt;

use afflux_engine::PinnedPages;

/// Bytes of a file as [`File::read_pinned`](crate::File::read_pinned) found them, until they are dropped.
///
/// They hold pages of the cache, and keep its memory alive even after its end. Keep them for as long as a reply takes,
/// not for ever.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
/// let file = cache.create(place.path().join("page"))?;
/// file.write_at(&[7; 10_000], 0)?;
/// let pages = file.read_pinned(100..9_000)?;
/// assert_eq!(pages.len(), 8_900);
/// assert!(pages.slices().all(|slice| slice.iter().all(|byte| *byte == 7)));
/// assert_eq!(pages.as_slice(), None, "more pages than one");
/// assert_eq!(file.read_pinned(100..200)?.as_slice(), Some(&[7; 100][..]));
/// file.write_at(&[8; 10_000], 0)?;
/// assert_eq!(pages.to_vec()[0], 7, "what is shown stays");
/// # Ok(())
/// # }
/// ```
pub struct Pages {
    /// Nothing if the bytes are a copy.
    pinned: Option<PinnedPages>,
    copy: Vec<u8>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("len", &self.len()).field("is_copy", &self.is_copy()).finish()
    }
}

impl Pages {
    #[inline]
    pub(crate) fn pinned(pinned: PinnedPages) -> Self {
        Self { pinned: Some(pinned), copy: Vec::new() }
    }

    pub(crate) fn of_copy(copy: Vec<u8>) -> Self {
        Self { pinned: None, copy }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.pinned.as_ref().map_or(self.copy.len(), PinnedPages::len)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the bytes are a copy, because too many pages were held already.
    pub fn is_copy(&self) -> bool {
        !self.copy.is_empty()
    }

    /// The bytes as one slice, if they lie in one page of 4 KiB, or are a copy.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.pinned {
            Some(pinned) => pinned.as_slice(),
            None => Some(&self.copy),
        }
    }

    /// The bytes, a slice a page, in the file's order: ready for `write_vectored`.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let copy = self.is_copy().then_some(self.copy.as_slice());
        self.pinned.iter().flat_map(PinnedPages::slices).chain(copy)
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.slices().for_each(|slice| bytes.extend_from_slice(slice));
        bytes
    }
}
