//! A USB stick or an SD card: flash behind a controller that maps whole erase blocks.
//!
//! The controller has a few erase blocks open, each written from its start onwards. A write that continues at the end
//! of its open block's data costs its bytes. For a write that skips ahead in an open block, the controller first copies
//! the gap from the old block. Any other write opens a block. If all are in use, the least recently used one is closed
//! first. The new block gets a copy of the data before the write. Closing a block copies the rest of the old block and
//! erases the old block. A block written to its end is closed for one erase, without a copy. Bytes are programmed in
//! whole flash pages. So a random 4 KiB write costs up to an erase block, and a sequential stream costs its bytes and
//! one erase a block. Cards that remap pages inside an open block are kinder to rewrites than this. (The scheme: A.
//! Bergmann, "Optimizing Linux with cheap flash drives", LWN 2011.)
//!
//! Owns: the open blocks and how far each is written.
//! Does not own: queueing (`elevator`), the numbers (`devices/`).
//! Invariants: at most `open_blocks` are open; one command is carried out at a time.

use super::elevator::Command;
use super::finishing::Finishing;
use super::seam::Span;
use super::times::transfer_ns;

#[derive(Clone, Debug)]
pub(crate) struct CardParameters {
    pub(crate) erase_block_bytes: u64,
    pub(crate) open_blocks: u64,
    pub(crate) page_bytes: u64,
    pub(crate) read_bytes_per_second: u64,
    pub(crate) write_bytes_per_second: u64,
    /// Rate of reading and writing inside the card, without the bus.
    pub(crate) copy_bytes_per_second: u64,
    pub(crate) erase_ns: u64,
    pub(crate) command_ns: u64,
}

struct Open {
    block: u64,
    /// Bytes of the new block that are written or copied.
    written: u64,
}

pub(super) struct Card {
    parameters: CardParameters,
    /// Least recently used first.
    open: Vec<Open>,
    free_ns: u64,
    pub(super) blocks_merged: u64,
    pub(super) finishing: Finishing,
}

impl Card {
    pub(super) fn new(parameters: CardParameters) -> Self {
        Self { parameters, open: Vec::new(), free_ns: 0, blocks_merged: 0, finishing: Finishing::default() }
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command) {
        let work_ns = if command.write {
            self.write_ns(command.span)
        } else {
            transfer_ns(command.span.len, self.parameters.read_bytes_per_second)
        };
        self.free_ns = now_ns.max(self.free_ns).saturating_add(self.parameters.command_ns).saturating_add(work_ns);
        self.finishing.add(self.free_ns, command.token);
    }

    fn write_ns(&mut self, span: Span) -> u64 {
        let block_bytes = self.parameters.erase_block_bytes;
        let (mut at, end) = (span.position, span.position + span.len);
        let mut ns = 0;
        while at < end {
            let block = at / block_bytes;
            let until = end.min((block + 1) * block_bytes);
            ns += self.write_in_block_ns(block, at - block * block_bytes, until - at);
            at = until;
        }
        ns
    }

    fn write_in_block_ns(&mut self, block: u64, offset: u64, len: u64) -> u64 {
        let mut ns = 0;
        let mut before = 0;
        if let Some(at) = self.open.iter().position(|open| open.block == block) {
            let open = self.open.remove(at);
            if open.written <= offset {
                before = open.written;
            } else {
                ns += self.close_ns(&open);
            }
        } else if self.open.len() as u64 >= self.parameters.open_blocks {
            let oldest = self.open.remove(0);
            ns += self.close_ns(&oldest);
        }
        ns += self.copy_ns(offset - before);
        let page = self.parameters.page_bytes;
        let programmed = (offset + len).next_multiple_of(page) - offset / page * page;
        ns += transfer_ns(programmed, self.parameters.write_bytes_per_second);
        let written = offset + len;
        if written == self.parameters.erase_block_bytes {
            ns += self.parameters.erase_ns;
        } else {
            self.open.push(Open { block, written });
        }
        ns
    }

    /// Copies the rest of the old block and erases the old block.
    fn close_ns(&mut self, open: &Open) -> u64 {
        self.blocks_merged += 1;
        self.copy_ns(self.parameters.erase_block_bytes - open.written) + self.parameters.erase_ns
    }

    fn copy_ns(&self, bytes: u64) -> u64 {
        transfer_ns(bytes, self.parameters.copy_bytes_per_second)
    }
}
