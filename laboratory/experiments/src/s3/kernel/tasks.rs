//! The tasks of the simulated kernel: readers that read a file from end to end, and an interactive one.
//!
//! Owns: the steps of a task, readahead's window.
//! Does not own: the memory, the policy.
//! Invariants: readahead waits for at most its one direct reclaim, and gives up at the first failure. The reader itself
//! then reads the missing pages.

use afflux_engine::Platform;
use afflux_linux_policies::reclaim::{MayRetry, Mechanisms, ReclaimPolicy, allocate, allocate_slab};

use super::cost;
use super::lists::Owner;
use super::run::Ends;
use super::{SLABS_A_PROCESS, Task};

/// The largest window: 128 KiB.
const WINDOW_PAGES: u32 = 32;
/// The first window of a stream.
const WINDOW_START_PAGES: u32 = 4;
/// Pages copied between two looks at the clock.
const COPIED_AT_A_TIME: u32 = 8;

/// A reader's window, as in the kernel's on-demand readahead of a stream.
struct Window {
    /// The page that triggers the read of the next window.
    marker: u32,
    /// The page after the last window.
    end: u32,
    pages: u32,
}

impl Task {
    /// Takes the slabs of a new process, which stay with the kernel's caches.
    pub(super) async fn start(&self, policy: &ReclaimPolicy) {
        for _ in 0..SLABS_A_PROCESS {
            self.kernel.platform.charge_ns(cost::ALLOCATE_NS);
            allocate_slab(policy, self).await;
        }
    }

    /// Reads a file from its start to its end, as `dd` does.
    pub(super) async fn read_file(&self, policy: &ReclaimPolicy, pages: u32) {
        let mut window = Window { marker: 0, end: 0, pages: WINDOW_START_PAGES };
        let mut at = 0;
        while at < pages {
            let mut copied = 0;
            while copied < COPIED_AT_A_TIME && at < pages {
                self.fetch(policy, &mut window, at, pages).await;
                self.lists().was_read(self.owner(at));
                (at, copied) = (at + 1, copied + 1);
            }
            self.kernel.platform.work(u64::from(copied) * cost::COPY_NS).await;
        }
    }

    fn owner(&self, page: u32) -> Owner {
        Owner { file: self.number, page }
    }

    /// Brings the page into memory, and the next window if this page is its marker.
    async fn fetch(&self, policy: &ReclaimPolicy, window: &mut Window, page: u32, pages: u32) {
        if page == window.marker && page < window.end {
            let start = window.end;
            window.pages = next_window(window.pages);
            self.read_ahead(policy, start, window.pages.min(pages - start)).await;
            (window.marker, window.end) = (start, (start + window.pages).min(pages));
        }
        if self.lists().has(self.owner(page)) {
            return;
        }
        // The stream starts, or it starts again because readahead failed or its pages were evicted.
        window.pages = WINDOW_START_PAGES;
        window.end = (page + window.pages).min(pages);
        window.marker = (page + 1).min(window.end);
        self.read_ahead(policy, page, window.end - page).await;
        while !self.lists().has(self.owner(page)) {
            self.read_page(policy, page, MayRetry::Yes).await;
        }
    }

    async fn read_ahead(&self, policy: &ReclaimPolicy, start: u32, pages: u32) {
        for page in start..start + pages {
            if !self.lists().has(self.owner(page)) && !self.read_page(policy, page, MayRetry::No).await {
                break;
            }
        }
        self.kernel.platform.work(u64::from(pages) * cost::ADD_NS).await;
    }

    /// Allocates a frame for a page and gives it to the file; returns false if there was none.
    async fn read_page(&self, policy: &ReclaimPolicy, page: u32, may_retry: MayRetry) -> bool {
        self.kernel.platform.charge_ns(cost::ALLOCATE_NS);
        let Some(frame) = allocate(policy, self, may_retry).await else { return false };
        self.lists().add(frame, self.owner(page));
        true
    }

    /// Wakes ten times a second for a millisecond of work and one page, until all readers have ended. Records how much
    /// longer than its work each time took.
    pub(super) async fn interact(&self, policy: &ReclaimPolicy, ends: &Ends) {
        let mut page = 0;
        while !ends.is_over() {
            let due = self.now().after(cost::TICK_NS);
            self.kernel.platform.sleep_until(due).await;
            self.kernel.platform.work(cost::TICK_WORK_NS).await;
            self.read_page(policy, page, MayRetry::Yes).await;
            self.lists().was_read(self.owner(page));
            page += 1;
            ends.interacted(self.now().since(due).saturating_sub(cost::TICK_WORK_NS));
        }
    }
}

/// The size of the next window: four times a small one, then twice, up to the largest.
fn next_window(pages: u32) -> u32 {
    let grown = if pages < WINDOW_PAGES / 16 { 4 * pages } else { 2 * pages };
    grown.min(WINDOW_PAGES)
}

#[cfg(test)]
mod tests;
