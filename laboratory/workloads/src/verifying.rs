//! The blocks that a job has written and has to read back.
//!
//! Owns: the list, and fio's order of reading it.
//! Does not own: the reads (`runner`).
//! Invariants: a block written once is read once; for an offset written twice the last write counts.

use std::collections::{BTreeMap, VecDeque};

use crate::job::{Job, Verify};
use crate::sequence::Block;

/// Written blocks to be read back.
pub(crate) struct Written {
    verify: Verify,
    /// Sorted by offset if offsets are random; the value is the length.
    sorted: Option<BTreeMap<(usize, u64), u64>>,
    in_order: VecDeque<Block>,
}

impl Written {
    /// An empty list; `None` if nothing is read back.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let verify = job.more.verify.filter(|verify| job.pattern.writes && !verify.only)?;
        Some(Self { verify, sorted: job.pattern.random.then(BTreeMap::new), in_order: VecDeque::new() })
    }

    pub(crate) fn add(&mut self, block: Block) {
        match &mut self.sorted {
            Some(sorted) => drop(sorted.insert((block.file, block.offset), block.len)),
            None => self.in_order.push_back(block),
        }
    }

    fn len(&self) -> usize {
        self.sorted.as_ref().map_or(self.in_order.len(), BTreeMap::len)
    }

    /// The blocks to read back now, after a write.
    pub(crate) fn due(&mut self) -> Vec<Block> {
        let Verify { backlog, batch, .. } = self.verify;
        if backlog == 0 || (self.len() as u64) < backlog {
            return Vec::new();
        }
        self.take(if batch == 0 { backlog } else { batch })
    }

    /// The remaining blocks, at the end.
    pub(crate) fn rest(&mut self) -> Vec<Block> {
        let rest = self.take(u64::MAX);
        if self.verify.at_end { rest } else { Vec::new() }
    }

    fn take(&mut self, count: u64) -> Vec<Block> {
        let count = count.min(self.len() as u64) as usize;
        match &mut self.sorted {
            Some(sorted) => {
                let first = std::iter::from_fn(|| sorted.pop_first());
                first.take(count).map(|((file, offset), len)| Block { file, offset, len }).collect()
            }
            None => self.in_order.drain(..count).collect(),
        }
    }
}
