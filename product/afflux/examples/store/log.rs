//! The store: one log of records, and an index in memory with the position of each key's last record.
//!
//! A record is a header (the lengths of key and value, a checksum of all), the key, the value. Opening reads the log
//! from its beginning and cuts it at the first record that is not whole: a crash may leave such a record of writes
//! without a sync. Compaction writes the live records to a new log and durably renames it over the old one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};

use afflux::{Advice, Cache, File, OpenOptions};

const HEADER_BYTES: usize = 16;
/// In place of a value's length: the key is deleted.
const DELETED: u32 = u32::MAX;
/// Longest key, and longest value; a record that claims more is invalid.
const BYTES_MAX: usize = 16 << 20;

/// The position of a value.
#[derive(Clone, Copy)]
struct ValueLocation {
    offset: u64,
    len: usize,
}

/// A store in a directory.
pub(crate) struct Store {
    cache: Cache,
    directory: PathBuf,
    log: File,
    /// The end of the log's last whole record.
    end: u64,
    index: BTreeMap<Vec<u8>, ValueLocation>,
}

impl Store {
    /// Opens the store in a directory, or makes it.
    pub(crate) fn open(cache: &Cache, directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let log = open_log(cache, &directory.join("log"))?;
        // The new log's name must also survive a crash.
        sync_directory(directory)?;
        let mut store =
            Self { cache: cache.clone(), directory: directory.to_owned(), log, end: 0, index: BTreeMap::new() };
        store.recover()?;
        Ok(store)
    }

    /// Reads the log, and cuts off an incomplete record.
    fn recover(&mut self) -> io::Result<()> {
        self.log.advise(0..u64::MAX, Advice::Sequential)?;
        let mut at = 0;
        while let Some((key, value, next)) = read_record(&self.log, at)? {
            self.remember(key, value);
            at = next;
        }
        self.log.advise(0..u64::MAX, Advice::Normal)?;
        if at < self.log.len() {
            self.log.set_len(at)?;
            self.log.sync_data()?;
        }
        self.end = at;
        Ok(())
    }

    fn remember(&mut self, key: Vec<u8>, value: Option<ValueLocation>) {
        match value {
            Some(place) => drop(self.index.insert(key, place)),
            None => drop(self.index.remove(&key)),
        }
    }

    /// Sets a key. Durable after a sync.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if key.len() > BYTES_MAX || value.len() > BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("more than {BYTES_MAX} bytes")));
        }
        let at = self.append(key, Some(value))?;
        let offset = at + (HEADER_BYTES + key.len()) as u64;
        self.remember(key.to_vec(), Some(ValueLocation { offset, len: value.len() }));
        Ok(())
    }

    /// Deletes a key. Durable after a sync.
    pub(crate) fn delete(&mut self, key: &[u8]) -> io::Result<()> {
        if self.index.contains_key(key) {
            self.append(key, None)?;
            self.index.remove(key);
        }
        Ok(())
    }

    fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<u64> {
        // A failed write may leave a part of a record, which would hide all later ones.
        if self.log.len() > self.end {
            self.log.set_len(self.end)?;
        }
        let header = header(key, value);
        let record = [IoSlice::new(&header), IoSlice::new(key), IoSlice::new(value.unwrap_or(&[]))];
        let at = self.log.append_vectored(&record)?;
        self.end = at + record.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(at)
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let Some(place) = self.index.get(key) else { return Ok(None) };
        let mut value = vec![0; place.len];
        self.log.read_exact_at(&mut value, place.offset)?;
        Ok(Some(value))
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.index.keys().map(Vec::as_slice)
    }

    /// Makes all earlier puts and deletes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.log.sync_data()
    }

    /// Writes a new log with only the live records. Returns the number of bytes saved. A crash leaves the old log or
    /// the new one.
    pub(crate) fn compact(&mut self) -> io::Result<u64> {
        let (path, new_path) = (self.directory.join("log"), self.directory.join("log.new"));
        let new = open_log(&self.cache, &new_path)?;
        // A crash during another compaction may have left bytes.
        new.set_len(0)?;
        let mut index = BTreeMap::new();
        for (key, place) in &self.index {
            let value = self.log.read_pinned(place.offset..place.offset + place.len as u64)?;
            let header = header(key, Some(&value.to_vec()));
            let mut record = vec![IoSlice::new(&header), IoSlice::new(key)];
            record.extend(value.slices().map(IoSlice::new));
            let offset = new.append_vectored(&record)? + (HEADER_BYTES + key.len()) as u64;
            index.insert(key.clone(), ValueLocation { offset, len: place.len });
        }
        new.sync_all()?;
        fs::rename(&new_path, &path)?;
        sync_directory(&self.directory)?;
        let saved = self.log.len() - new.len();
        self.end = new.len();
        (self.log, self.index) = (new, index);
        Ok(saved)
    }
}

fn open_log(cache: &Cache, path: &Path) -> io::Result<File> {
    cache.open(path, OpenOptions::new().read(true).write(true).create(true))
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// The header of a record: the lengths, and a checksum of everything.
fn header(key: &[u8], value: Option<&[u8]>) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(key.len() as u32).to_le_bytes());
    header[4..8].copy_from_slice(&value.map_or(DELETED, |value| value.len() as u32).to_le_bytes());
    let sum = checksum(&[&header[..8], key, value.unwrap_or(&[])]);
    header[8..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// A record: its key, the position of its value, and the start of the next record.
type Record = (Vec<u8>, Option<ValueLocation>, u64);

/// The record at `at`; none if it is missing or incomplete.
fn read_record(log: &File, at: u64) -> io::Result<Option<Record>> {
    let mut header = [0; HEADER_BYTES];
    if log.read_at(&mut header, at)? < HEADER_BYTES {
        return Ok(None);
    }
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (key_len, value_len) = (number(0) as usize, number(4));
    let is_deletion = value_len == DELETED;
    let value_len = if is_deletion { 0 } else { value_len as usize };
    if key_len > BYTES_MAX || value_len > BYTES_MAX {
        return Ok(None);
    }
    let mut body = vec![0; key_len + value_len];
    if log.read_at(&mut body, at + HEADER_BYTES as u64)? < body.len() {
        return Ok(None);
    }
    if checksum(&[&header[..8], &body]).to_le_bytes() != header[8..] {
        return Ok(None);
    }
    let offset = at + (HEADER_BYTES + key_len) as u64;
    body.truncate(key_len);
    let place = (!is_deletion).then_some(ValueLocation { offset, len: value_len });
    Ok(Some((body, place, offset + value_len as u64)))
}

/// FNV-1a, which finds records that a crash tore. A store for real data needs a stronger checksum.
fn checksum(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
