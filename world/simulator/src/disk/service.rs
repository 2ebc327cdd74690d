//! A disk's timing, medium and figures, and the clock they go by.
//!
//! Owns: the device's own time, which stands still during a hang and may pass slowly; the instant of its next run.
//! Does not own: the requests' effects (`state`), the calls into the world (`mod`).
//! Invariants: the timing does not run twice at an instant without cause; a hung device does nothing.

use afflux_engine::{FILE_BYTES_MAX, Operation};

use super::layout::Layout;
use super::statistics::{DiskFigures, OffsetSample, Statistics};
use super::timing::{Event, MediumWork, Span, Timing};
use super::{DiskFileId, is_data};
use crate::random::Random;

pub(super) struct Service {
    timing: Timing,
    layout: Option<Layout>,
    statistics: Statistics,
    /// A file got blocks or size since the last flush. All files share the journal's transaction.
    journal_owes: bool,
    /// Total time that the device has hung.
    stalled_ns: u64,
    hung_since_ns: Option<u64>,
    /// The world's instant and the device's own instant since which the device's time passes `slowness` times as
    /// slowly.
    slow_since_ns: (u64, u64),
    slowness: u64,
    /// The instant of the scheduled run of the timing; `u64::MAX` if there is none.
    wake_ns: u64,
    /// Spans of the request located last. Retained for its memory.
    spans: Vec<Span>,
    /// In the order in which they happened, latest first.
    events: Vec<Event>,
}

impl Service {
    pub(super) fn new(timing: Timing, layout: Option<Layout>) -> Self {
        Self {
            timing,
            layout,
            statistics: Statistics::new(),
            journal_owes: false,
            stalled_ns: 0,
            hung_since_ns: None,
            slow_since_ns: (0, 0),
            slowness: 1,
            wake_ns: u64::MAX,
            spans: Vec::new(),
            events: Vec::new(),
        }
    }

    fn own_ns(&self, now_ns: u64) -> u64 {
        let (since_ns, own_since_ns) = self.slow_since_ns;
        own_since_ns + (self.hung_since_ns.unwrap_or(now_ns) - self.stalled_ns - since_ns) / self.slowness
    }

    /// The world's instant for an instant of the device's own time.
    fn world_ns(&self, own_ns: u64) -> u64 {
        let (since_ns, own_since_ns) = self.slow_since_ns;
        let slowed_ns = own_ns.saturating_sub(own_since_ns).saturating_mul(self.slowness);
        since_ns.saturating_add(slowed_ns).saturating_add(self.stalled_ns)
    }

    /// From now on everything takes this many times as long as the model says.
    pub(super) fn slow_down(&mut self, now_ns: u64, times: u64) {
        let own_ns = self.own_ns(now_ns);
        let unstalled_ns = self.hung_since_ns.unwrap_or(now_ns) - self.stalled_ns;
        (self.slow_since_ns, self.slowness) = ((unstalled_ns, own_ns), times.max(1));
    }

    pub(super) fn is_hung(&self) -> bool {
        self.hung_since_ns.is_some()
    }

    pub(super) fn hang(&mut self, now_ns: u64) {
        self.hung_since_ns.get_or_insert(now_ns);
    }

    pub(super) fn release(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.hung_since_ns.take() {
            self.stalled_ns += now_ns.saturating_sub(since_ns);
        }
    }

    /// True if a run has to be scheduled for this instant; it then counts as scheduled.
    pub(super) fn wants_wake(&mut self, at_ns: u64) -> bool {
        let wants = at_ns < self.wake_ns;
        if wants {
            self.wake_ns = at_ns;
        }
        wants
    }

    /// A scheduled run comes. False if an earlier one has replaced it, or the device hangs.
    pub(super) fn woken(&mut self, at_ns: u64) -> bool {
        if at_ns != self.wake_ns {
            return false;
        }
        self.wake_ns = u64::MAX;
        !self.is_hung()
    }

    /// Allocates space for a write.
    pub(super) fn allocate(&mut self, file: DiskFileId, operation: Operation) {
        let Some(layout) = &mut self.layout else { return };
        if let Operation::Write { offset, len } = operation
            && offset.saturating_add(len.into()) <= FILE_BYTES_MAX
        {
            layout.allocate(file.0, offset, len.into());
        }
    }

    /// Finds the positions of a request's bytes.
    pub(super) fn locate(&mut self, file: DiskFileId, operation: Operation) {
        self.spans.clear();
        if let Operation::Read { offset, len } | Operation::Write { offset, len } = operation {
            match &self.layout {
                Some(layout) => layout.find(file.0, offset, len.into(), &mut self.spans),
                None => self.spans.push(Span { position: offset, len: len.into() }),
            }
        }
    }

    /// The spans of the request located last.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Gives the request last located to the timing.
    pub(super) fn accept(&mut self, now_ns: u64, id: u64, file: DiskFileId, operation: Operation, volatile: bool) {
        let work = match operation {
            Operation::Read { .. } => MediumWork::Read,
            Operation::Write { .. } => MediumWork::Write,
            Operation::Sync if volatile && std::mem::take(&mut self.journal_owes) => MediumWork::Commit,
            Operation::Sync if volatile => MediumWork::Flush,
            _ => MediumWork::Memory,
        };
        self.timing.accept(self.own_ns(now_ns), id, file.0, work, &self.spans);
    }

    /// Runs the timing until now; returns the instant of its next run.
    pub(super) fn run(&mut self, now_ns: u64, random: &mut Random) -> Option<u64> {
        let next_ns = self.timing.run(self.own_ns(now_ns), random, &mut self.events);
        self.events.reverse();
        next_ns.map(|next_ns| self.world_ns(next_ns))
    }

    /// The earliest event not yet taken.
    pub(super) fn pop_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// A file got blocks or size.
    pub(super) fn owe_journal(&mut self) {
        self.journal_owes = true;
    }

    pub(super) fn in_flight(&mut self, now_ns: u64, count: u64) {
        self.statistics.depth(now_ns, count);
    }

    /// A request has ended; `count` requests are left.
    pub(super) fn ended(
        &mut self,
        now_ns: u64,
        file: DiskFileId,
        operation: Operation,
        position: Option<u64>,
        done: bool,
        in_flight: u64,
    ) {
        self.statistics.depth(now_ns, in_flight);
        if is_data(operation) && done {
            let (Operation::Read { len, .. } | Operation::Write { len, .. }) = operation else { return };
            let write = matches!(operation, Operation::Write { .. });
            self.statistics.data(now_ns, write, len.into(), position);
        }
        match (operation, &mut self.layout) {
            (Operation::Sync, _) => self.statistics.sync(),
            (Operation::SetSize { size }, Some(layout)) if done => layout.free(file.0, size, u64::MAX - size),
            (Operation::Reserve { offset, len }, Some(layout)) if done => layout.lay_out(file.0, offset, len),
            (Operation::Punch { offset, len }, Some(layout)) if done => layout.free(file.0, offset, len),
            _ => {}
        }
    }

    pub(super) fn remove_file(&mut self, file: DiskFileId) {
        if let Some(layout) = &mut self.layout {
            layout.remove(file.0);
        }
    }

    pub(super) fn lay_out(&mut self, file: DiskFileId, offset: u64, len: u64) {
        if let Some(layout) = &mut self.layout {
            layout.lay_out(file.0, offset, len);
        }
    }

    pub(super) fn place(&mut self, file: DiskFileId, offset: u64, position: u64, len: u64) {
        if let Some(layout) = &mut self.layout {
            layout.place(file.0, offset, position, len);
        }
    }

    /// Power was lost.
    pub(super) fn clear(&mut self, now_ns: u64) {
        self.statistics.depth(now_ns, 0);
        self.timing.clear();
        self.events.clear();
    }

    pub(super) fn figures(&mut self, now_ns: u64) -> DiskFigures {
        let counts = self.timing.counts();
        DiskFigures {
            seeks: counts.seeks,
            file_switches: counts.file_switches,
            merges: counts.merges,
            commands: counts.commands,
            command_bytes: counts.command_bytes,
            ..self.statistics.figures(now_ns)
        }
    }

    pub(super) fn offsets(&self) -> &[OffsetSample] {
        self.statistics.offsets()
    }
}
