//! A running kernel: machine, disks, files, tasks.
//!
//! Owns: the boot, the calls of experiments, time in ticks. Does not own: what tasks do (`writer`, `fs_writeback`,
//! `sync`).
//! Invariants: the lock is never held while a task waits or a request is submitted. CPU time is charged to the task
//! that uses it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_engine::{Backing, Device, Operation, PastCache, Platform, Request};
use afflux_frames::Frames;
use afflux_simulator::SimPlatform;

use crate::figures::{Figures, FirstEvents, Path, Records};
use crate::inode::{Inode, InodeId, Lists};
use crate::pdflush::Pool;
use crate::proportions::{Global, Local};
use crate::release::{Release, Threads};
use crate::request_queue::{IoContext, QueueOptions, RequestQueue};
use crate::state::{Bdi, State};
use crate::sysctl::{INITIAL_JIFFIES, JIFFY_NS, PAGE_BYTES, Sysctl};
use crate::vmstat::{BdiStat, VmStat};
use crate::wait::{WaitQueue, lock};

/// Frames beyond those that requests can hold: lists of free frames reserve some.
const SPARE_FRAMES: u64 = 4096;

/// The machine.
pub struct MachineOptions {
    /// Pages of memory that can be dirty or file pages.
    pub memory_pages: u64,
    /// Virtual CPUs.
    pub cpus: usize,
    /// The initial knobs.
    pub sysctl: Sysctl,
    /// Nanoseconds of CPU time to find, copy and dirty a page.
    pub dirty_page_ns: u64,
    /// Nanoseconds of CPU time to submit a page.
    pub write_page_ns: u64,
    /// The disks, each with its queue.
    pub disks: Vec<(Arc<dyn Device>, QueueOptions)>,
}

/// A task of the kernel or of a program.
#[derive(Default)]
pub struct Task {
    pub(crate) dirties: Local,
    pub(crate) io: IoContext,
    pub(crate) is_pdflush: bool,
}

/// A superblock: the files of one file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperBlock {
    pub(crate) lists: usize,
    pub(crate) bdi: usize,
}

/// A running kernel.
pub struct Kernel {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) release: Release,
    pub(crate) cpus: u64,
    dirty_page_ns: u64,
    write_page_ns: u64,
    memory: PastCache,
    zeros: Vec<u8>,
    state: Mutex<State>,
    /// Tasks that wait for congestion to clear.
    pub(crate) congestion: WaitQueue,
    /// Tasks that wait for an inode's `I_SYNC`, for pages under writeback, and for a new time of the periodic job.
    pub(crate) inode_synced: WaitQueue,
    pub(crate) page_written: WaitQueue,
    pub(crate) timer: WaitQueue,
}

impl Kernel {
    /// Boots a kernel and starts its threads.
    ///
    /// # Errors
    /// When the memory of requests cannot be had.
    pub fn boot(
        platform: &Arc<SimPlatform>,
        release: Release,
        options: MachineOptions,
    ) -> Result<Arc<Self>, afflux_frames::ArenaError> {
        let frames: u64 = options.disks.iter().map(|(_, queue)| 2 * queue.nr_requests * queue.request_pages).sum();
        let largest = options.disks.iter().map(|(_, queue)| queue.request_pages).max().unwrap_or(1);
        let memory = PastCache::new(Arc::new(Frames::new_stamped((frames + SPARE_FRAMES) * PAGE_BYTES)?));
        let bdis: Vec<Bdi> = options.disks.into_iter().map(|(device, queue)| bdi(device, queue)).collect();
        // Flushers have one set of lists for each device; superblocks get theirs when they are mounted.
        let lists = match release.threads {
            Threads::Pdflush => Vec::new(),
            Threads::Flushers => bdis.iter().map(|_| Lists::default()).collect(),
        };
        let state = State {
            memory_pages: options.memory_pages,
            sysctl: options.sysctl,
            vm: VmStat { free: options.memory_pages, ..VmStat::default() },
            bdis,
            lists,
            inodes: Vec::new(),
            vm_completions: Global::default(),
            vm_dirties: Global::default(),
            bdp_ratelimits: vec![0; options.cpus],
            pool: Pool::default(),
            records: Records::default(),
        };
        let kernel = Arc::new(Self {
            platform: Arc::clone(platform),
            release,
            cpus: options.cpus as u64,
            dirty_page_ns: options.dirty_page_ns,
            write_page_ns: options.write_page_ns,
            memory,
            zeros: vec![0; (largest * PAGE_BYTES) as usize],
            state: Mutex::new(state),
            congestion: WaitQueue::default(),
            inode_synced: WaitQueue::default(),
            page_written: WaitQueue::default(),
            timer: WaitQueue::default(),
        });
        match release.threads {
            Threads::Pdflush => kernel.start_pdflush(),
            Threads::Flushers => kernel.start_flushers(),
        }
        Ok(kernel)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn jiffies(&self) -> u64 {
        INITIAL_JIFFIES + self.platform.now().0 / JIFFY_NS
    }

    /// Mounts a file system on a disk.
    pub fn mount(&self, disk: usize) -> SuperBlock {
        if self.release.threads == Threads::Flushers {
            return SuperBlock { lists: disk, bdi: disk };
        }
        let mut state = self.lock();
        state.lists.push(Lists::default());
        SuperBlock { lists: state.lists.len() - 1, bdi: disk }
    }

    /// A file on a file system, at this position of its disk.
    pub fn create(&self, on: SuperBlock, backing: Backing) -> InodeId {
        let mut state = self.lock();
        state.inodes.push(Inode::new(on.lists, on.bdi, backing));
        InodeId(state.inodes.len() - 1)
    }

    /// Drops the dirty pages of a file unwritten.
    pub fn truncate(&self, inode: InodeId) {
        self.lock().truncate(inode);
    }

    /// Changes knobs.
    pub fn set(&self, change: impl FnOnce(&mut Sysctl)) {
        change(&mut self.lock().sysctl);
    }

    /// Gives a disk the past of having completed all writes for a long time, so that its share is the whole limit.
    pub fn remember_completions(&self, disk: usize) {
        self.lock().remember_completions(disk);
    }

    /// The figures since boot.
    pub fn figures(&self) -> Figures {
        self.lock().records.figures
    }

    /// The calls of `balance_dirty_pages` since boot, by path.
    pub fn paths(&self) -> BTreeMap<Path, u64> {
        self.lock().records.paths.clone()
    }

    /// From now on first events count anew.
    pub fn mark(&self) {
        self.lock().records.first = FirstEvents::default();
    }

    /// The first events since [`Kernel::mark`].
    pub fn first_events(&self) -> FirstEvents {
        self.lock().records.first
    }

    /// The machine's counts.
    pub fn vmstat(&self) -> VmStat {
        self.lock().vm
    }

    pub(crate) fn charge_dirtying(&self, pages: u64) {
        self.platform.charge_ns(pages * self.dirty_page_ns);
    }

    pub(crate) fn charge_writing(&self, pages: u64) {
        self.platform.charge_ns(pages * self.write_page_ns);
    }

    /// Submits pages under writeback as one request, which the queue has admitted.
    pub(crate) fn submit(self: &Arc<Self>, id: InodeId, pages: Range<u64>) {
        let (device, backing) = {
            let state = self.lock();
            let inode = &state.inodes[id.0];
            (Arc::clone(&state.bdis[inode.bdi].device), inode.backing.clone())
        };
        let bytes = (pages.end - pages.start) * PAGE_BYTES;
        let operation = Operation::Write { offset: pages.start * PAGE_BYTES, len: bytes as u32 };
        let kernel = Arc::clone(self);
        // A failed write ends like any other: these kernels leave the pages clean.
        let done = move |_, _| kernel.end_request(id, pages);
        let data = &self.zeros[..bytes as usize];
        device.submit(Request::past_cache(&self.memory, backing, operation, data, done));
    }

    fn end_request(&self, id: InodeId, pages: Range<u64>) {
        let (freed, wait) = {
            let mut state = self.lock();
            let (bdi, freed) = state.end_request(id, pages);
            (freed, state.bdis[bdi].queue.wait.clone())
        };
        if freed.wakes {
            wait.wake_one();
        }
        if freed.cleared {
            self.congestion.wake_all();
        }
        self.page_written.wake_all();
    }

    /// `congestion_wait`: until any queue stops being congested, at most `ns`.
    pub(crate) async fn congestion_wait(&self, ns: u64) {
        if self.release.woken_on_clear {
            self.congestion.enter().at_most(&self.platform, ns).await;
        } else {
            self.platform.sleep_until(self.platform.now().after(ns)).await;
        }
    }
}

fn bdi(device: Arc<dyn Device>, queue: QueueOptions) -> Bdi {
    Bdi {
        device,
        queue: RequestQueue::new(queue),
        stat: BdiStat::default(),
        dirty_exceeded: false,
        completions: Local::default(),
        has_pdflush: false,
        work: VecDeque::new(),
        flusher: WaitQueue::default(),
    }
}
