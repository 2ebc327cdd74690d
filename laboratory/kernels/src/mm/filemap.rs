//! Programs that read sparse files, with readahead (`mm/filemap.c`, `mm/readahead.c`).
//!
//! Owns: a reader's window, the steps of a read; the start and the end of a process.
//! Does not own: frames (`page_alloc`). Invariants: readahead waits for at most its one direct reclaim, and gives up at
//! the first failure. The reader itself then reads the missing pages.

use super::page_alloc::Gfp;
use super::{Memory, Owner};

/// The largest window: 128 KiB.
const WINDOW_PAGES: u32 = 32;
/// The first window of a stream.
const WINDOW_START_PAGES: u32 = 4;
/// Pages copied between two looks at the clock.
const COPIED_AT_A_TIME: u32 = 8;

/// A file that a task reads from its start to its end (`file_ra_state`).
pub struct Reader {
    task: u32,
    file: u32,
    at: u32,
    /// The page that triggers the read of the next window.
    marker: u32,
    /// The page after the last window.
    end: u32,
    window_pages: u32,
}

impl Reader {
    /// Of a file, by a task.
    pub fn new(task: u32, file: u32) -> Self {
        Self { task, file, at: 0, marker: 0, end: 0, window_pages: WINDOW_START_PAGES }
    }

    fn owner(&self, page: u32) -> Owner {
        Owner { file: self.file, page }
    }
}

impl Memory {
    /// Takes the slabs of a new process, and pages of its own; returns these pages.
    pub async fn exec(&self, task: u32, slabs: u32, pages: u32) -> Vec<u32> {
        for _ in 0..slabs {
            self.platform.charge_ns(self.options.costs.allocate_ns);
            self.alloc_slab(task).await;
        }
        let mut own = Vec::with_capacity(pages as usize);
        for _ in 0..pages {
            own.extend(self.alloc_page(task, Gfp::MayRetry).await);
        }
        own
    }

    /// Frees a process's own pages.
    pub fn exit(&self, pages: Vec<u32>) {
        self.free_pages(pages);
    }

    /// Reads a few pages of a file with `pages`, as `dd` does; returns whether there are more.
    pub async fn read(&self, reader: &mut Reader, pages: u32) -> bool {
        let mut copied = 0;
        while copied < COPIED_AT_A_TIME && reader.at < pages {
            self.fetch(reader, pages).await;
            self.lru().mark_read(reader.owner(reader.at));
            (reader.at, copied) = (reader.at + 1, copied + 1);
        }
        self.platform.work(u64::from(copied) * self.options.costs.copy_ns).await;
        reader.at < pages
    }

    /// Reads the next page of a file, without readahead.
    pub async fn read_one(&self, reader: &mut Reader) {
        let owner = reader.owner(reader.at);
        self.read_page(reader.task, owner, Gfp::MayRetry).await;
        self.lru().mark_read(owner);
        reader.at += 1;
    }

    /// Brings the reader's page into memory, and the next window if this page is its marker.
    async fn fetch(&self, reader: &mut Reader, pages: u32) {
        let page = reader.at;
        if page == reader.marker && page < reader.end {
            let start = reader.end;
            reader.window_pages = next_window(reader.window_pages);
            self.read_ahead(reader, start, reader.window_pages.min(pages - start)).await;
            (reader.marker, reader.end) = (start, (start + reader.window_pages).min(pages));
        }
        let owner = reader.owner(page);
        if self.lru().has(owner) {
            return;
        }
        // The stream starts, or it starts again because readahead failed or its pages were evicted.
        reader.window_pages = WINDOW_START_PAGES;
        reader.end = (page + reader.window_pages).min(pages);
        reader.marker = (page + 1).min(reader.end);
        self.read_ahead(reader, page, reader.end - page).await;
        while !self.lru().has(owner) {
            self.read_page(reader.task, owner, Gfp::MayRetry).await;
        }
    }

    async fn read_ahead(&self, reader: &Reader, start: u32, pages: u32) {
        for page in start..start + pages {
            let owner = reader.owner(page);
            if !self.lru().has(owner) && !self.read_page(reader.task, owner, Gfp::NoRetry).await {
                break;
            }
        }
        self.platform.work(u64::from(pages) * self.options.costs.add_ns).await;
    }

    /// Allocates a frame for a page and gives it to the file; returns false if there was none.
    async fn read_page(&self, task: u32, owner: Owner, gfp: Gfp) -> bool {
        let Some(frame) = self.alloc_page(task, gfp).await else { return false };
        self.lru().add(frame, owner);
        true
    }
}

/// `get_next_ra_size`: four times a small window, then twice, up to the largest.
pub(super) fn next_window(pages: u32) -> u32 {
    let grown = if pages < WINDOW_PAGES / 16 { 4 * pages } else { 2 * pages };
    grown.min(WINDOW_PAGES)
}
