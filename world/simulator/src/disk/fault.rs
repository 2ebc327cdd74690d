//! Faults: rules by which a disk's requests fail, wait or get lost.
//!
//! Owns: the rules in force and their remaining counts.
//! Does not own: carrying out a fault (`mod`).
//! Invariants: the first rule that matches a request decides it; an exhausted rule is removed.

use afflux_engine::{DeviceError, Operation};

use crate::random::Random;

use super::DiskFileId;
use super::timing::Span;

/// The operations that a fault meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultTarget {
    /// Reads.
    Read,
    /// Writes of data.
    Write,
    /// Reads and writes.
    Data,
    /// Syncs.
    Sync,
    /// Changes of size, punches and reservations.
    Layout,
    /// Any of these.
    Any,
}

/// The fate of a request that a fault meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultWhat {
    /// It fails; of a write, some sectors may have been written.
    Error(DeviceError),
    /// A sync fails, and some sectors written since the last sync are lost. Hosts that drop unwritable pages and report
    /// the error once do the same. Other requests fail as with `Error`.
    ErrorLosing(DeviceError),
    /// It is dropped without an answer; of a write, some sectors may have been written.
    Lost,
    /// It takes this much longer.
    Delay {
        /// The additional latency in nanoseconds.
        ns: u64,
    },
    /// It is not carried out before a [`Disk::release`](super::Disk::release).
    Hang,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The operations.
    pub target: FaultTarget,
    /// The file; all files if `None`.
    pub file: Option<DiskFileId>,
    /// First byte of the range that a request must touch. Syncs have no range: they always match.
    pub offset: u64,
    /// Length of that range in bytes; [`u64::MAX`] reaches to the end.
    pub len: u64,
    /// Matching requests that pass before the first strike.
    pub skip: u64,
    /// How often it strikes; `None` is without limit.
    pub times: Option<u64>,
    /// Of 1,000 requests that match, how many it strikes.
    pub per_mille: u64,
    /// The fate of the request.
    pub what: FaultWhat,
}

impl Fault {
    /// A rule for every request of `target`, without limit.
    pub fn always(target: FaultTarget, what: FaultWhat) -> Self {
        Self { target, file: None, offset: 0, len: u64::MAX, skip: 0, times: None, per_mille: 1000, what }
    }

    /// The same rule for one file only.
    #[must_use]
    pub fn on(mut self, file: DiskFileId) -> Self {
        self.file = Some(file);
        self
    }

    /// The same rule, for at most this many strikes.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// The same rule, after this many requests have passed.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// The same rule for requests that touch this range.
    #[must_use]
    pub fn range(mut self, offset: u64, len: u64) -> Self {
        (self.offset, self.len) = (offset, len);
        self
    }

    fn meets(&self, file: DiskFileId, operation: Operation) -> bool {
        let (target, range) = match operation {
            Operation::Read { offset, len } => (FaultTarget::Read, Some((offset, u64::from(len)))),
            Operation::Write { offset, len } => (FaultTarget::Write, Some((offset, u64::from(len)))),
            Operation::Sync => (FaultTarget::Sync, None),
            Operation::SetSize { size } => (FaultTarget::Layout, Some((size, u64::MAX))),
            Operation::Punch { offset, len } | Operation::Reserve { offset, len } => {
                (FaultTarget::Layout, Some((offset, len)))
            }
        };
        let touches = range.is_none_or(|(offset, len)| {
            offset < self.offset.saturating_add(self.len) && self.offset < offset.saturating_add(len)
        });
        let targeted = match self.target {
            FaultTarget::Any => true,
            FaultTarget::Data => matches!(target, FaultTarget::Read | FaultTarget::Write),
            own => own == target,
        };
        targeted && self.file.is_none_or(|own| own == file) && touches
    }
}

/// The times and positions on the medium at which a rule holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultWindow {
    /// First instant, in virtual nanoseconds.
    pub from_ns: u64,
    /// The instant from which it no longer holds; [`u64::MAX`] is never.
    pub until_ns: u64,
    /// Interval between the starts of periods, counted from `from_ns`; 0 if it holds all the time.
    pub every_ns: u64,
    /// How long in each period it holds.
    pub lasting_ns: u64,
    /// First byte and length of a range of the medium that a request must touch. A request without a position on the
    /// medium touches none.
    pub medium: Option<(u64, u64)>,
}

impl Default for FaultWindow {
    /// Always and everywhere.
    fn default() -> Self {
        Self { from_ns: 0, until_ns: u64::MAX, every_ns: 0, lasting_ns: 0, medium: None }
    }
}

impl FaultWindow {
    fn holds(&self, now_ns: u64, spans: &[Span]) -> bool {
        let within = (self.from_ns..self.until_ns).contains(&now_ns)
            && (self.every_ns == 0 || (now_ns - self.from_ns) % self.every_ns < self.lasting_ns);
        let touches = |(start, len): (u64, u64)| {
            spans.iter().any(|span| span.position < start.saturating_add(len) && start < span.position + span.len)
        };
        within && self.medium.is_none_or(touches)
    }
}

#[derive(Default)]
pub(crate) struct Faults {
    rules: Vec<(Fault, FaultWindow)>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault, window: FaultWindow) {
        self.rules.push((fault, window));
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// The fault for this request, if a rule strikes it. `spans` are the request's positions on the medium.
    pub(crate) fn strike(
        &mut self,
        now_ns: u64,
        file: DiskFileId,
        operation: Operation,
        spans: &[Span],
        random: &mut Random,
    ) -> Option<FaultWhat> {
        let at = self.rules.iter_mut().position(|(rule, window)| {
            let meets = rule.meets(file, operation) && window.holds(now_ns, spans);
            let skips = meets && rule.skip > 0;
            rule.skip -= u64::from(skips);
            meets && !skips && random.chance(rule.per_mille)
        })?;
        let rule = &mut self.rules[at].0;
        let what = rule.what;
        if let Some(times) = &mut rule.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.rules.remove(at);
            }
        }
        Some(what)
    }
}
