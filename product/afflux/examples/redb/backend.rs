//! A file of a cache as the storage of redb.
//!
//! Owns: redb's calls in terms of the library's.
//! Does not own: the database (redb), the file's pages (the cache).
//! Invariants: `sync_data` succeeds only when all earlier writes are durable. A read past the end is an error. The
//! cache claims the file, so no other cache and no redb without a cache opens it meanwhile.
//!
//! # Memory
//!
//! redb has a cache of its own (`set_cache_size`). A hit there copies nothing, while a hit below it costs redb a new
//! page and a copy. So give redb nine tenths or more of the memory for one database, and let most of the cache below be
//! dirty (`Knob::DirtyRatio`). Give the cache the memory where several databases or files share it.

use std::fs;
use std::io;
use std::path::Path;

use afflux::{Cache, File};
use redb::StorageBackend;

/// The storage of one database.
#[derive(Debug)]
pub(crate) struct CacheBackend {
    file: File,
}

impl CacheBackend {
    /// Opens the file of a database, and makes it if there is none.
    pub(crate) fn create(cache: &Cache, path: &Path) -> io::Result<Self> {
        let file = cache.create(path)?;
        if file.is_empty() {
            // After a crash a new file is found only if its directory is durable. The cache has no part in that.
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(Self { file })
    }
}

impl StorageBackend for CacheBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(data, offset)
    }
}
