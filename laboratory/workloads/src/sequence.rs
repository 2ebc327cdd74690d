//! The next operation of a clone of a job, by fio's rules.
//!
//! Owns: the order of files, the times of syncs, the end of the job.
//! Does not own: sizes of files (`shares`), offsets and lengths inside one (`offsets`), the time of an operation
//! (`runner`), the operation itself.
//! Invariants: the sequence depends only on the job and the generator. A job without `time_based` ends.

use crate::job::{BlockSizes, Job, Service};
pub(crate) use crate::offsets::Direction;
use crate::offsets::{Offsets, Rules};
use crate::shares::FileShare;
use afflux_simulator::Random;

/// One call that moves bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Block {
    /// The index of the file in the clone.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Debug)]
struct FileState {
    offsets: Offsets,
    done: bool,
}

/// The operations of one clone.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    rules: Rules,
    reads: bool,
    writes: bool,
    trims: bool,
    /// The trimmed block that is written next.
    trimmed: Option<Block>,
    mix_read_percent: u64,
    fsync_every: u64,
    fdatasync_every: u64,
    files: Vec<FileState>,
    current: usize,
    service: Service,
    /// Calls to a file before the next file follows, and how many of them are left.
    service_calls: (u64, u64),
    /// Number of files that are used in rotation, and the first file that does not take part yet.
    open: (usize, usize),
    /// The bytes of one pass over the files.
    pass_bytes: u64,
    /// Bytes that the job asks for. Each loop adds as many to the bytes after which the clone ends; once the loops are
    /// over, passes follow until these are moved.
    asked_bytes: u64,
    /// Calls after which the clone ends, over all loops.
    calls_max: u64,
    /// The number of loops in all, and the number still left.
    loops: (u64, u64),
    issued: u64,
    calls_issued: u64,
    /// Calls issued before this pass.
    calls_before: u64,
    writes_issued: u64,
    synced_last: bool,
    rewound: Vec<usize>,
    random: Random,
}

impl Sequence {
    pub(crate) fn new(job: &Job, shares: &[FileShare], mut random: Random) -> Self {
        let whole: u64 = shares.iter().map(|share| share.job_bytes).fold(0, u64::saturating_add);
        let rules = Rules::of(job);
        let files: Vec<FileState> = shares
            .iter()
            .map(|share| FileState { offsets: Offsets::new(job, &rules, share, &mut random), done: false })
            .collect();
        let more = &job.more;
        let size = if job.size == 0 { whole } else { job.size.min(whole) };
        let total = if more.fill { u64::MAX } else { more.io_bytes.map_or(size, |amount| amount.of(size)) };
        // Each trimmed block is written, too.
        let each = if job.pattern.trims && job.pattern.writes { 2 } else { 1 };
        let pass_bytes = if more.fill { u64::MAX } else { size.saturating_mul(each) };
        let asked_bytes = total.saturating_mul(each);
        let loops = more.loops.max(1);
        let open = usize::try_from(more.open_files).unwrap_or(usize::MAX);
        let open = if open == 0 { files.len() } else { open.min(files.len()) };
        Self {
            reads: job.pattern.reads,
            writes: job.pattern.writes && !more.verify.is_some_and(|verify| verify.only),
            trims: job.pattern.trims,
            trimmed: None,
            mix_read_percent: job.mix_read_percent,
            fsync_every: job.fsync_every,
            fdatasync_every: job.fdatasync_every,
            files,
            current: 0,
            service: more.service,
            service_calls: (more.service_calls.max(1), 0),
            open: (open, open),
            pass_bytes,
            asked_bytes,
            calls_max: match more.calls_max {
                0 => u64::MAX,
                calls => calls.saturating_mul(each).saturating_mul(loops),
            },
            loops: (loops, loops - 1),
            issued: 0,
            calls_issued: 0,
            calls_before: 0,
            writes_issued: 0,
            synced_last: false,
            rewound: Vec::new(),
            random,
            rules,
        }
    }

    /// Bytes that the clone moves unless time ends it.
    pub(crate) fn total_bytes(&self) -> u64 {
        let largest = self.rules.block_bytes_max().saturating_mul(self.calls_max);
        let in_loops = self.pass_bytes.saturating_mul(self.loops.0);
        self.asked_bytes.max(in_loops).min(self.bytes_max()).min(largest)
    }

    /// Bytes after which the clone ends.
    fn bytes_max(&self) -> u64 {
        self.asked_bytes.saturating_mul(self.loops.0)
    }

    /// Whether the operations of all loops have been issued. With `time_based` only a number of calls ends the clone.
    pub(crate) fn is_done(&self) -> bool {
        self.calls_issued >= self.calls_max || !self.rules.time_based && self.issued >= self.bytes_max()
    }

    /// Starts the next pass over the files, if there is one: of the next loop, or since fewer bytes were moved than the
    /// job asks for.
    pub(crate) fn next_loop(&mut self) -> bool {
        // As fio, it leaves bytes that may not hold a block.
        let lacks = self.asked_bytes.saturating_sub(self.issued) >= self.rules.block_bytes_max();
        let goes_on = self.loops.1 > 0 || self.asked_bytes > self.pass_bytes && lacks && !self.is_done();
        // A loop may come when nothing is left. It moves nothing, closes its files, and is the last one.
        let is_last = std::mem::replace(&mut self.calls_before, self.calls_issued) == self.calls_issued;
        if is_last || !goes_on || !self.rewind_all() {
            return false;
        }
        self.loops.1 = self.loops.1.saturating_sub(1);
        self.synced_last = false;
        true
    }

    /// The sync that comes before anything else, if one is due: `true` for data only. Writes are counted as they are
    /// issued, and the count is checked again after a read, too.
    pub(crate) fn sync_due(&self) -> Option<bool> {
        // In fio, a job that trims and then writes blocks never syncs.
        let due = |every: u64| every > 0 && !self.trims && self.writes_issued.is_multiple_of(every);
        if self.synced_last || self.writes_issued == 0 {
            None
        } else if due(self.fsync_every) {
            Some(false)
        } else {
            due(self.fdatasync_every).then_some(true)
        }
    }

    /// The file of a due sync, which counts like a block.
    pub(crate) fn sync(&mut self) -> Option<usize> {
        self.synced_last = true;
        self.next_file()
    }

    /// Whether the last operation was a sync; a closing sync is then left out.
    pub(crate) fn synced_last(&self) -> bool {
        self.synced_last
    }

    /// The direction of the next block.
    pub(crate) fn direction(&mut self) -> Direction {
        if self.trims {
            return if self.trimmed.is_some() { Direction::Write } else { Direction::Trim };
        }
        match (self.reads, self.writes) {
            (true, true) if self.random.below(100) < self.mix_read_percent => Direction::Read,
            (_, false) => Direction::Read,
            _ => Direction::Write,
        }
    }

    /// The next block; `None` when every file is done.
    pub(crate) fn block(&mut self, direction: Direction) -> Option<Block> {
        let block = match self.trimmed.take().filter(|_| direction == Direction::Write) {
            Some(trimmed) => trimmed,
            None => self.next_block(direction)?,
        };
        self.trimmed = (direction == Direction::Trim && self.writes).then_some(block);
        self.issued += block.len;
        self.calls_issued += 1;
        self.writes_issued += u64::from(direction == Direction::Write);
        self.synced_last = false;
        Some(block)
    }

    fn next_block(&mut self, direction: Direction) -> Option<Block> {
        loop {
            let Some(file) = self.next_file() else {
                if !self.rules.time_based || !self.rewind_all() {
                    return None;
                }
                continue;
            };
            let Some((offset, len)) = self.files[file].offsets.next(&self.rules, direction, &mut self.random) else {
                self.files[file].done = true;
                self.service_calls.1 = 0;
                continue;
            };
            return Some(Block { file, offset, len });
        }
    }

    /// Files that have started over. Their cached pages are to be dropped, as fio asks of the kernel.
    pub(crate) fn take_rewound(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.rewound)
    }

    /// The end of the range with the open files: the first unfinished ones.
    fn window(&mut self) -> usize {
        let (open, mut end) = self.open;
        if open == self.files.len() {
            return open;
        }
        let mut usable = self.files[..end].iter().filter(|file| !file.done).count();
        while usable < open && end < self.files.len() {
            usable += usize::from(!self.files[end].done);
            end += 1;
        }
        self.open.1 = end;
        end
    }

    /// The next file in rotation, among open and unfinished files.
    fn next_file(&mut self) -> Option<usize> {
        let count = self.window();
        if self.service_calls.1 > 0 && !self.files[self.current].done {
            self.service_calls.1 -= 1;
            return Some(self.current);
        }
        let from = match self.service {
            Service::RoundRobin if self.service_calls.0 > 1 => self.current + usize::from(self.calls_issued > 0),
            Service::RoundRobin => self.current,
            Service::Sequential => 0,
            Service::Random => self.random.below(count.max(1) as u64) as usize,
        };
        let file = (0..count).map(|step| (from + step) % count).find(|file| !self.files[*file].done)?;
        self.service_calls.1 = self.service_calls.0 - 1;
        self.current = if self.service_calls.1 > 0 { file } else { (file + 1) % count };
        Some(file)
    }

    /// Starts all files over. False if no file has space for a block.
    fn rewind_all(&mut self) -> bool {
        let smallest = self.rules.block_bytes_min();
        for (at, file) in self.files.iter_mut().enumerate() {
            file.done = file.offsets.bytes() < smallest;
            file.offsets.rewind();
            self.rewound.push(at);
        }
        self.open.1 = self.open.0;
        let usable = |sizes: &BlockSizes| self.files.iter().any(|file| file.offsets.bytes() >= sizes.min);
        // The larger blocks of a mixed job may fit nowhere; the loop would then never end.
        self.rules.block_bytes.iter().all(usable)
    }
}

#[cfg(test)]
mod tests;
