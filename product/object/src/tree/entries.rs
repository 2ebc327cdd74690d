//! Reading entries of directories.
//!
//! Owns: the ranges of places that one scan reads.
//! Does not own: the order of names (`Window::position`), objects (`read`).
//! Invariants: one scan reads some thousands of entries at most. Names are spread evenly over places.

use std::collections::BTreeMap;

use afflux_volume::{Identified, Kind, Named, Stat, VolumeError, Window};
use bytes::Bytes;

use super::data_core::DataCore;
use super::read::Used;
use super::state::ObjectTree;
use crate::format::entry::Entry;
use crate::pages::next_page;
use crate::seams::{Durability, RecordDatabase};

/// Places are below this.
const POSITIONS: u64 = 1 << 31;
/// Entries that one scan reads, as far as names are spread evenly.
const SCAN_ENTRIES: u64 = 16_384;
/// One scan reads no more, however names are spread.
const SCANNED_MAX: usize = 2 * SCAN_ENTRIES as usize;
/// Names with so many entries between them, as far as names are spread evenly, are read together.
const GAP_ENTRIES: u64 = 16;

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn entry(&self, directory: u64, name: &[u8]) -> Result<Option<Entry>, VolumeError> {
        let key = Entry::key(directory, name);
        let mut end = key.clone();
        end.push(0);
        let found = self.scan(key, end).await?;
        Ok(found.first().map(|(key, value)| Entry::decode(key, value)).transpose()?)
    }

    /// Shows the entries from a place on, in the order of their places, up to the last place that `show` still wants.
    async fn each_entry(
        &self,
        directory: u64,
        entries: u64,
        first: u64,
        mut show: impl FnMut(Entry) -> u64,
    ) -> Result<(), VolumeError> {
        let step =
            POSITIONS.checked_mul(SCAN_ENTRIES).and_then(|places| places.checked_div(entries)).unwrap_or(POSITIONS);
        let (mut from, mut last) = (first, POSITIONS - 1);
        while from <= last && entries > 0 {
            let to = from.saturating_add(step.max(1)).min(POSITIONS);
            let (mut key, end) = (Entry::position_key(directory, from), Entry::position_key(directory, to));
            while key < end {
                let records = self.core.records();
                let found = records.scan_first(key, end.clone(), Durability::Applied, SCANNED_MAX).await?;
                key = next_page(&found, SCANNED_MAX, &end);
                for (key, value) in found {
                    last = show(Entry::decode(&key, &value)?).min(POSITIONS - 1);
                }
            }
            from = to;
        }
        Ok(())
    }

    pub(super) async fn list(&self, directory: &Used, mut window: Window) -> Result<(Window, Stat), VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let first = window.first_position();
        let offer = |entry: Entry| {
            window.offer(&entry.name, entry.ino);
            window.last_position()
        };
        self.each_entry(directory.ino(), entries, first, offer).await?;
        window.complete();
        let (view, _) = self.directory(directory).await?;
        Ok((window, self.stat_of_view(&view)))
    }

    pub(super) async fn identities(&self, directory: &Used) -> Result<Vec<Identified>, VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let mut all = Vec::new();
        let keep = |entry: Entry| {
            let (identity, directory) = (self.identity(entry.ino), entry.kind == Kind::Directory);
            all.push(Identified { name: Bytes::from(entry.name), identity, directory });
            u64::MAX
        };
        self.each_entry(directory.ino(), entries, 0, keep).await?;
        Ok(all)
    }

    /// The object of each name. Names that follow each other in a listing are read together.
    pub(super) async fn name_all(&self, directory: &Used, names: &[Bytes]) -> Result<Vec<Option<Named>>, VolumeError> {
        let (_, entries) = self.directory(directory).await?;
        let mut placed: Vec<(u64, &Bytes)> = names.iter().map(|name| (Window::position(name), name)).collect();
        placed.sort_unstable();
        let is_near = |one: &(u64, &Bytes), next: &(u64, &Bytes)| {
            u128::from(next.0 - one.0) * u128::from(entries) <= u128::from(GAP_ENTRIES * POSITIONS)
        };
        let mut found = BTreeMap::new();
        for run in placed.chunk_by(is_near) {
            let ([(_, first), ..], [.., (_, last)]) = (run, run) else { continue };
            let (from, mut to) = (Entry::key(directory.ino(), first), Entry::key(directory.ino(), last));
            to.push(0);
            for (key, value) in self.scan(from, to).await? {
                let entry = Entry::decode(&key, &value)?;
                found.insert(entry.name, entry.ino);
            }
        }
        let numbers: Vec<u64> = names.iter().filter_map(|name| found.get(&name[..]).copied()).collect();
        let named = self.named(&numbers).await?;
        let of_name = |name: &Bytes| found.get(&name[..]).and_then(|ino| named.get(ino).copied());
        Ok(names.iter().map(of_name).collect())
    }
}
