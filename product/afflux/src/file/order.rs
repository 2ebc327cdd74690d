//! Control over which bytes reach the disk, and in which order.
//!
//! Owns: the public calls, the holder's guard.
//! Does not own: the withheld pages and their order (the engine).
//! Invariants: as in `file`.

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::pin;

use afflux_linux_device::DeferredWakes;

use super::File;
use crate::error::Error;

/// Bytes that stay off the disk until this is dropped: see [`File::withhold`].
///
/// It does not keep the cache open. Bytes that are withheld when the cache ends are reported as unwritten.
#[must_use = "the bytes are let go at once"]
pub struct Withheld(Option<afflux_engine::WithheldRange>);

impl Withheld {
    /// Lets go of the bytes: as a drop.
    pub fn let_go(self) {}
}

impl Drop for Withheld {
    fn drop(&mut self) {
        // Writers that wait to be admitted may be foreign tasks.
        let _held = DeferredWakes::new();
        self.0 = None;
    }
}

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Withheld")
    }
}

impl File {
    /// Keeps the bytes of a range off the disk until the result is dropped: unwritten ones, and ones that are written
    /// later. Readers of the cache see them as ever. The range is widened to whole pages of 4 KiB. The call waits for
    /// syncs that began earlier.
    ///
    /// Until then every sync of these bytes fails with [`Error::Withheld`], as does the close of the file. Withheld
    /// bytes may take a quarter of the disk's part of the dirty limit. A write of more fails with
    /// [`Error::TooMuchWithheld`], and other writes go on.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let place = tempfile::tempdir()?;
    /// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
    /// let table = cache.create(place.path().join("table"))?;
    /// let uncommitted = table.withhold(0..u64::MAX)?;
    /// table.write_at(&[7; 8192], 0)?;
    /// assert!(table.sync_data().is_err(), "not before we say");
    /// uncommitted.let_go();
    /// table.sync_data()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A range that ends before it begins; a handle that was not opened for writing; [`Error::TooManyWithheld`] if
    /// 4,096 ranges of the file are withheld; a closed cache.
    pub fn withhold(&self, range: Range<u64>) -> io::Result<Withheld> {
        self.block(pin!(self.withhold_work(range)))
    }

    /// [`File::withhold`], awaited. If it is dropped before it ends, nothing is withheld.
    ///
    /// # Errors
    /// As [`File::withhold`].
    pub async fn withhold_async(&self, range: Range<u64>) -> io::Result<Withheld> {
        self.pass(pin!(self.withhold_work(range))).await
    }

    async fn withhold_work(&self, range: Range<u64>) -> Result<Withheld, Error> {
        self.check_writable()?;
        self.range(&range)?;
        let withheld = self.0.engine.withhold(&self.0.pages, range).await;
        withheld.map(|withheld| Withheld(Some(withheld))).map_err(|error| self.said(error))
    }

    /// Orders the bytes of a range after bytes of another file, or of this one. Bytes of `range`, unwritten ones and
    /// ones that are written later, go to the disk only after all bytes that were written to `earlier` of `first`
    /// before this call are durable. Both ranges are widened to whole pages of 4 KiB.
    ///
    /// So a log can come before the data that it describes, without a sync for each change: append the record, call
    /// this, write the data. A sync of the data syncs the log first. The cache does so by itself when the log's bytes
    /// expire (`dirty_expire_centisecs`). It also does so when ordered bytes have as much room as they may. A page
    /// with several orders waits for all of them. An order ends when its earlier bytes are durable.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let place = tempfile::tempdir()?;
    /// # let cache = afflux::Cache::builder().memory(16 << 20).build()?;
    /// let log = cache.create(place.path().join("log"))?;
    /// let table = cache.create(place.path().join("table"))?;
    /// let at = log.append(b"row 3 becomes x")?;
    /// table.order_after(0..4096, &log, at..log.len())?;
    /// table.write_at(b"x", 3)?;
    /// table.sync_data()?; // The log is durable, too.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::OrderCycle`] if the earlier bytes wait for the range themselves; a file of another cache; otherwise as
    /// [`File::withhold`].
    pub fn order_after(&self, range: Range<u64>, first: &Self, earlier: Range<u64>) -> io::Result<()> {
        self.block(pin!(self.order_work(range, first, earlier)))
    }

    /// [`File::order_after`], awaited. If it is dropped before it ends, the order may hold or not.
    ///
    /// # Errors
    /// As [`File::order_after`].
    pub async fn order_after_async(&self, range: Range<u64>, first: &Self, earlier: Range<u64>) -> io::Result<()> {
        self.pass(pin!(self.order_work(range, first, earlier))).await
    }

    async fn order_work(&self, range: Range<u64>, first: &Self, earlier: Range<u64>) -> Result<(), Error> {
        self.check_writable()?;
        self.range(&range)?;
        first.range(&earlier)?;
        if !std::sync::Arc::ptr_eq(&self.0.engine, &first.0.engine) {
            return Err(Error::OtherCache { path: first.path() });
        }
        let ordered = self.0.engine.order_after(&self.0.pages, range, &first.0.pages, earlier).await;
        ordered.map_err(|error| self.said(error))
    }
}
