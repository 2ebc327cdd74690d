//! Which operation a clone of a job does next, by fio's rules.
//!
//! Owns: which files' turn it is, when a sync is due, when all is done.
//! Does not own: sizes of files (`shares`), offsets and lengths inside one (`places`), when an operation happens
//! (`runner`), the operation itself.
//! Invariants: depends on the job and the generator alone. A job without `time_based` ends.

use crate::job::{BlockSizes, Job, Service};
pub(crate) use crate::places::Direction;
use crate::places::{Places, Rules};
use crate::shares::Share;
use afflux_simulator::Random;

/// One call that moves bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Block {
    /// Which file of the clone.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Debug)]
struct FileState {
    places: Places,
    done: bool,
}

/// The operations of one clone.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    rules: Rules,
    reads: bool,
    writes: bool,
    trims: bool,
    /// What was trimmed and is to be written next.
    trimmed: Option<Block>,
    mix_read_percent: u64,
    fsync_every: u64,
    fdatasync_every: u64,
    files: Vec<FileState>,
    turn: usize,
    service: Service,
    /// Calls to a file before the next has its turn, and how many are left of them.
    service_calls: (u64, u64),
    /// Files that the turns go round among, and the first that is not among them yet.
    open: (usize, usize),
    /// Bytes after which the clone has done its part, once.
    total: u64,
    /// More is asked for than the files have: they begin again.
    again: bool,
    calls_max: u64,
    /// How often all is done, and how often it is still to be.
    loops: (u64, u64),
    issued: u64,
    calls_issued: u64,
    writes_issued: u64,
    synced_last: bool,
    rewound: Vec<usize>,
    random: Random,
}

impl Sequence {
    pub(crate) fn new(job: &Job, shares: &[Share], mut random: Random) -> Self {
        let whole: u64 = shares.iter().map(|share| share.job_bytes).fold(0, u64::saturating_add);
        let rules = Rules::of(job);
        let files: Vec<FileState> = shares
            .iter()
            .map(|share| FileState { places: Places::new(job, &rules, share, &mut random), done: false })
            .collect();
        let more = &job.more;
        let size = if job.size == 0 { whole } else { job.size.min(whole) };
        let total = if more.fill { u64::MAX } else { more.io_bytes.map_or(size, |amount| amount.of(size)) };
        let again = total > size && !more.fill;
        // What is trimmed is written, too.
        let each = if job.pattern.trims && job.pattern.writes { 2 } else { 1 };
        let total = total.saturating_mul(each);
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
            turn: 0,
            service: more.service,
            service_calls: (more.service_calls.max(1), 0),
            open: (open, open),
            total,
            again,
            calls_max: if more.calls_max == 0 { u64::MAX } else { more.calls_max.saturating_mul(each) },
            loops: (more.loops.max(1), more.loops.max(1) - 1),
            issued: 0,
            calls_issued: 0,
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
        self.total.saturating_mul(self.loops.0).min(largest)
    }

    /// Whether all has been issued, this time round. Never with `time_based`, but for a number of calls.
    pub(crate) fn is_done(&self) -> bool {
        self.calls_issued >= self.calls_max || !self.rules.time_based && self.issued >= self.total
    }

    /// Begins again from the start, where that is asked for.
    pub(crate) fn next_loop(&mut self) -> bool {
        if self.loops.1 == 0 || self.calls_issued >= self.calls_max {
            return false;
        }
        self.loops.1 -= 1;
        self.issued = 0;
        self.rewind_all();
        true
    }

    /// Whether a sync comes before anything else: `true` for one of data alone. Writes are counted as they
    /// are issued, and the count is looked at again after a read too.
    pub(crate) fn sync_due(&self) -> Option<bool> {
        // A job that trims what it then writes has no turn for syncs, in fio.
        let due = |every: u64| every > 0 && !self.trims && self.writes_issued.is_multiple_of(every);
        if self.synced_last || self.writes_issued == 0 {
            None
        } else if due(self.fsync_every) {
            Some(false)
        } else {
            due(self.fdatasync_every).then_some(true)
        }
    }

    /// The file that a due sync is for: whose turn it is, as for a block.
    pub(crate) fn sync(&mut self) -> Option<usize> {
        self.synced_last = true;
        self.take_turn()
    }

    /// Whether the last operation was a sync: a closing one is left out then.
    pub(crate) fn synced_last(&self) -> bool {
        self.synced_last
    }

    /// Which way the next block goes.
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

    /// The next block; nothing when every file is done.
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
            let Some(file) = self.take_turn() else {
                if !(self.rules.time_based || self.again) || !self.rewind_all() {
                    return None;
                }
                continue;
            };
            let Some((offset, len)) = self.files[file].places.next(&self.rules, direction, &mut self.random) else {
                self.files[file].done = true;
                self.service_calls.1 = 0;
                continue;
            };
            return Some(Block { file, offset, len });
        }
    }

    /// Files that began again from their start: what the cache has of them is to be dropped, as fio asks the
    /// kernel to.
    pub(crate) fn take_rewound(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.rewound)
    }

    /// The files that are open: the first so many that are not done.
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

    /// Whose turn it is among the files that are open, those that are done left out.
    fn take_turn(&mut self) -> Option<usize> {
        let count = self.window();
        if self.service_calls.1 > 0 && !self.files[self.turn].done {
            self.service_calls.1 -= 1;
            return Some(self.turn);
        }
        let from = match self.service {
            Service::RoundRobin if self.service_calls.0 > 1 => self.turn + usize::from(self.calls_issued > 0),
            Service::RoundRobin => self.turn,
            Service::Sequential => 0,
            Service::Random => self.random.below(count.max(1) as u64) as usize,
        };
        let file = (0..count).map(|step| (from + step) % count).find(|file| !self.files[*file].done)?;
        self.service_calls.1 = self.service_calls.0 - 1;
        self.turn = if self.service_calls.1 > 0 { file } else { (file + 1) % count };
        Some(file)
    }

    /// All files begin again. Not if none has room for a block.
    fn rewind_all(&mut self) -> bool {
        let smallest = self.rules.block_bytes_min();
        for (at, file) in self.files.iter_mut().enumerate() {
            file.done = file.places.bytes() < smallest;
            file.places.rewind();
            self.rewound.push(at);
        }
        self.open.1 = self.open.0;
        let usable = |sizes: &BlockSizes| self.files.iter().any(|file| file.places.bytes() >= sizes.min);
        // Of a mixed job the larger blocks may fit nowhere; then it could go round for ever.
        self.rules.block_bytes.iter().all(usable)
    }
}

#[cfg(test)]
mod tests;
