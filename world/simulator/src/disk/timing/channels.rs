//! A solid-state drive: flash dies that work side by side behind a controller with memory.
//!
//! Reads: a page's position determines its die. A die senses one page at a time, and the bytes pass the interface in
//! order. Writes: bytes pass the interface into the controller's memory and are acknowledged there. Each full page is
//! programmed on the next die in turn, whatever its position, as in a log-structured mapping. While unprogrammed bytes
//! exceed the memory, acknowledgements wait. Garbage collection: once the fresh blocks are used up, a die stalls after
//! each block's worth of programmed pages, for an erase and for copies. The copies take `copies_per_mille` thousandths
//! of a read and a program for each page that did not continue the write before it. A flush programs the partial page
//! and waits for all dies. (The structure: N. Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008.)
//!
//! Owns: the instants at which dies are free, the contents of the controller's memory.
//! Does not own: the commands in flight (`mechanism`), the numbers (`devices/`).
//! Invariants: a die does one thing at a time; dies begin their blocks staggered, so that not all
//! stall at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::elevator::Command;
use super::finishing::Finishing;
use super::seam::Span;
use super::times::transfer_ns;

#[derive(Clone, Debug)]
pub(crate) struct ChannelParameters {
    /// Dies that work side by side.
    pub(crate) dies: u64,
    pub(crate) page_bytes: u64,
    pub(crate) pages_per_block: u64,
    pub(crate) read_ns: u64,
    pub(crate) program_ns: u64,
    pub(crate) erase_ns: u64,
    /// Old pages copied to free their blocks, for 1,000 pages written at random.
    pub(crate) copies_per_mille: u64,
    /// Bytes written before the first garbage collection.
    pub(crate) fresh_bytes: u64,
    pub(crate) interface_bytes_per_second: u64,
    pub(crate) command_ns: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) flush_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Die {
    free_ns: u64,
    /// Pages programmed since the last collection, and the randomly written ones among them.
    pages: u64,
    random_pages: u64,
}

pub(super) struct Channels {
    parameters: ChannelParameters,
    dies: Vec<Die>,
    interface_free_ns: u64,
    /// Bytes written since the beginning, which is the position in the log.
    log_bytes: u64,
    /// The end of the last write.
    last_end: u64,
    /// The instants at which pages in the controller's memory are programmed.
    programs: BinaryHeap<Reverse<u64>>,
    pub(super) blocks_erased: u64,
    pub(super) finishing: Finishing,
}

impl Channels {
    pub(super) fn new(parameters: ChannelParameters) -> Self {
        let staggered = |at| parameters.pages_per_block * at / parameters.dies;
        let dies = (0..parameters.dies).map(|at| Die { pages: staggered(at), ..Die::default() }).collect();
        Self {
            parameters,
            dies,
            interface_free_ns: 0,
            log_bytes: 0,
            last_end: 0,
            programs: BinaryHeap::new(),
            blocks_erased: 0,
            finishing: Finishing::default(),
        }
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command) {
        let from_ns = now_ns.saturating_add(self.parameters.command_ns);
        let end_ns = if command.write { self.write(from_ns, command.span) } else { self.read(from_ns, command.span) };
        self.finishing.add(end_ns, command.token);
    }

    fn read(&mut self, from_ns: u64, span: Span) -> u64 {
        let (page, dies) = (self.parameters.page_bytes, self.parameters.dies);
        let (mut first_ns, mut last_ns) = (u64::MAX, 0);
        for at in span.position / page..(span.position + span.len).div_ceil(page) {
            let die = &mut self.dies[(at % dies) as usize];
            die.free_ns = die.free_ns.max(from_ns).saturating_add(self.parameters.read_ns);
            (first_ns, last_ns) = (first_ns.min(die.free_ns), last_ns.max(die.free_ns));
        }
        let bus_ns = self.interface_free_ns.max(first_ns);
        self.interface_free_ns = bus_ns + transfer_ns(span.len, self.parameters.interface_bytes_per_second);
        self.interface_free_ns.max(last_ns)
    }

    fn write(&mut self, from_ns: u64, span: Span) -> u64 {
        let page = self.parameters.page_bytes;
        let bus_ns = self.interface_free_ns.max(from_ns);
        self.interface_free_ns = bus_ns + transfer_ns(span.len, self.parameters.interface_bytes_per_second);
        let arrived_ns = self.interface_free_ns;
        let random = span.position != self.last_end;
        self.last_end = span.position + span.len;
        let pages = self.log_bytes / page..(self.log_bytes + span.len) / page;
        self.log_bytes += span.len;
        let mut programmed_ns = arrived_ns;
        for at in pages {
            programmed_ns = programmed_ns.max(self.program(arrived_ns, at, random));
        }
        if self.parameters.memory_bytes == 0 {
            return programmed_ns.max(self.fill_page(arrived_ns));
        }
        let mut acknowledged_ns = arrived_ns;
        let pages_max = self.parameters.memory_bytes / page;
        while let Some(Reverse(first_ns)) = self.programs.peek().copied()
            && (first_ns <= acknowledged_ns || self.programs.len() as u64 > pages_max)
        {
            self.programs.pop();
            acknowledged_ns = acknowledged_ns.max(first_ns);
        }
        acknowledged_ns
    }

    /// Programs page `at` of the log; its die then collects garbage if that is due.
    fn program(&mut self, from_ns: u64, at: u64, random: bool) -> u64 {
        let parameters = &self.parameters;
        let die = &mut self.dies[(at % parameters.dies) as usize];
        let end_ns = die.free_ns.max(from_ns).saturating_add(parameters.program_ns);
        die.free_ns = end_ns;
        die.pages += 1;
        die.random_pages += u64::from(random);
        if die.pages >= parameters.pages_per_block {
            if self.log_bytes > parameters.fresh_bytes {
                let copies = die.random_pages * parameters.copies_per_mille / 1000;
                die.free_ns += parameters.erase_ns + copies * (parameters.read_ns + parameters.program_ns);
                self.blocks_erased += 1;
            }
            (die.pages, die.random_pages) = (0, 0);
        }
        if parameters.memory_bytes > 0 {
            self.programs.push(Reverse(end_ns));
        }
        end_ns
    }

    /// Programs the partial page, if there is one.
    fn fill_page(&mut self, from_ns: u64) -> u64 {
        let page = self.parameters.page_bytes;
        if self.log_bytes.is_multiple_of(page) {
            return from_ns;
        }
        let at = self.log_bytes / page;
        self.log_bytes = (at + 1) * page;
        self.program(from_ns, at, true)
    }

    /// The end of a flush that begins now.
    pub(super) fn flush(&mut self, now_ns: u64) -> u64 {
        let mut end_ns = self.fill_page(now_ns.max(self.interface_free_ns));
        if let Some(last_ns) = self.programs.iter().map(|program| program.0).max() {
            end_ns = end_ns.max(last_ns);
        }
        end_ns.saturating_add(self.parameters.flush_ns)
    }
}
