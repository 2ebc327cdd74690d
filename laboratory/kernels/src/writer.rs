//! Writers: pages become dirty, and `balance_dirty_pages` is called from time to time.
//!
//! Owns: the count by CPU that triggers a call, the call. Does not own: its decisions (`balance`).
//! Invariants: a call is due after exactly the page that uses up the CPU's allowance.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::balance::{Call, Fractions, Marks, Step, ratelimit_pages};
use crate::fs_writeback::WritebackControl;
use crate::inode::InodeId;
use crate::kernel::{Kernel, Task};
use crate::release::Threads;
use crate::state::State;
use crate::vmstat::Reads;

impl Kernel {
    /// Dirties pages of a file, one after the other, as `write` or stores into a mapping do.
    pub async fn write(self: &Arc<Self>, task: &mut Task, inode: InodeId, first: u64, pages: u64) {
        let (mut at, end) = (first, first + pages);
        while at < end {
            let cpu = self.platform.cpu();
            let left = {
                let state = self.lock();
                let exceeded = state.bdis[state.inodes[inode.0].bdi].dirty_exceeded;
                self.ratelimit(&state, exceeded).saturating_sub(state.bdp_ratelimits[cpu]).max(1)
            };
            let count = left.min(end - at);
            self.charge_dirtying(count);
            let jiffies = self.jiffies();
            let due = {
                let mut state = self.lock();
                state.set_page_dirty(&mut task.dirties, inode, at..at + count, jiffies);
                let bdi = state.inodes[inode.0].bdi;
                let limit = self.ratelimit(&state, state.bdis[bdi].dirty_exceeded);
                let dirtied = &mut state.bdp_ratelimits[cpu];
                *dirtied += count;
                let due = *dirtied >= limit;
                *dirtied = if due { 0 } else { *dirtied };
                due.then_some(bdi)
            };
            if let Some(bdi) = due {
                self.balance_dirty_pages(task, bdi).await;
            }
            at += count;
        }
    }

    fn ratelimit(&self, state: &State, exceeded: bool) -> u64 {
        ratelimit_pages(state.memory_pages, self.cpus, exceeded)
    }

    async fn balance_dirty_pages(self: &Arc<Self>, task: &mut Task, bdi: usize) {
        let (mut call, mut path, mut reads) = (Call::default(), String::new(), Reads::default());
        loop {
            let (step, background) = self.balance_step(task, bdi, &mut call, &mut reads);
            call.pass += 1;
            match step {
                Step::Return => {
                    path.push('C');
                    self.ended(bdi, path, reads);
                    if background {
                        self.start_background(bdi);
                    }
                    return;
                }
                Step::WriteBack(pages) => {
                    path.push('W');
                    call.written_last = self.write_back(task, bdi, pages).await;
                    call.written += call.written_last;
                    self.lock().records.figures.written_by_writers += call.written_last;
                }
                Step::CongestionWait(ns) | Step::Sleep(ns) => {
                    path.push('P');
                    let began = self.platform.now();
                    match step {
                        Step::CongestionWait(_) => self.congestion_wait(ns).await,
                        _ => self.platform.sleep_until(began.after(ns)).await,
                    }
                    let figures = &mut self.lock().records.figures;
                    figures.waits += 1;
                    figures.wait_ns += self.platform.now().since(began);
                }
            }
        }
    }

    /// One pass, and whether it requests background writeback.
    fn balance_step(&self, task: &mut Task, bdi: usize, call: &mut Call, reads: &mut Reads) -> (Step, bool) {
        let now_ns = self.platform.now().0;
        let mut state = self.lock();
        let ratelimit = self.ratelimit(&state, false);
        let view = state.view(Some(bdi));
        let State { bdis, vm_completions, vm_dirties, records, .. } = &mut *state;
        let mut marks = Marks { dirty_exceeded: bdis[bdi].dirty_exceeded, start_background: false };
        let mut of = Fractions {
            vm_completions,
            vm_dirties,
            completions: &mut bdis[bdi].completions,
            dirties: &mut task.dirties,
        };
        let step = self.release.law.step(&view, ratelimit, call, &mut marks, &mut of);
        bdis[bdi].dirty_exceeded = marks.dirty_exceeded;
        reads.add(view.reads.get());
        records.figures.passes += 1;
        records.figures.reads.add(view.reads.get());
        if marks.start_background {
            records.first.background_ns.get_or_insert(now_ns);
        }
        if matches!(step, Step::CongestionWait(_) | Step::Sleep(_)) {
            records.first.wait_pages.get_or_insert(view.bdi.reclaimable + view.bdi.writeback);
        }
        (step, marks.start_background)
    }

    fn ended(&self, bdi: usize, mut path: String, reads: Reads) {
        let mut state = self.lock();
        if state.view(Some(bdi)).writeback_in_progress {
            path.push('f');
        }
        let records = &mut state.records;
        records.figures.calls += 1;
        *records.paths.entry((path, reads)).or_default() += 1;
    }

    fn start_background(self: &Arc<Self>, bdi: usize) {
        match self.release.threads {
            Threads::Pdflush => self.start_background_writeout(0),
            Threads::Flushers => self.start_background_work(bdi),
        }
    }

    /// Writes back pages of a disk in the calling task, and waits for requests; returns how many. A writer over its
    /// share does this.
    pub async fn write_back(self: &Arc<Self>, task: &mut Task, disk: usize, pages: u64) -> u64 {
        let mut wbc = WritebackControl { bdi: Some(disk), ..WritebackControl::of(pages) };
        self.writeback_inodes(&mut wbc, task).await;
        pages - wbc.nr_to_write
    }
}
