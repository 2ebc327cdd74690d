//! The table of costs.
//!
//! Owns: the things that may cost something, their names and units; the costs of a machine.
//! Does not own: the built-in tables (`costs`), the format of a file (`parse`).

use std::sync::Arc;

use afflux_engine::counters::{COUNTERS, Counter, Local};

/// Most nanoseconds that one unit of anything may cost.
pub const COST_NS_MAX: u64 = 1_000_000_000;

/// The thing that a cost is charged for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostOf {
    /// One poll of a task.
    Step,
    /// A CPU's change to another task.
    Switch,
    /// One more unit on a counter.
    Counter(Counter),
    /// A cost that the caller of a read or a write pays on top of the engine's work.
    Caller(CallerCost),
}

/// A cost of a job's call besides the engine's work, in runs that charge it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallerCost {
    /// A kernel's `pread` of a cached page, without the copy.
    ReadCall,
    /// A kernel's `pwrite` to a dirty page, without the copy.
    WriteCall,
    /// The copy of a page from memory (not from the CPU's cache), where the page does not follow the one copied before.
    RandomPage,
    /// The copy of the next page in sequence, for a read.
    ReadPage,
    /// The copy of the next page in sequence, for a write.
    WritePage,
}

impl CallerCost {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [Self::ReadCall, Self::WriteCall, Self::RandomPage, Self::ReadPage, Self::WritePage];

    /// The key in a file and the unit.
    fn key(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadCall => ("kernel_read_call", "ns/call"),
            Self::WriteCall => ("kernel_write_call", "ns/call"),
            Self::RandomPage => ("memory_random", "ns/page"),
            Self::ReadPage => ("memory_read", "ns/page"),
            Self::WritePage => ("memory_write", "ns/page"),
        }
    }
}

impl CostOf {
    /// Everything that may cost something, in the order of tables.
    pub fn all() -> impl Iterator<Item = Self> {
        let counters = Counter::ALL.iter().map(|counter| Self::Counter(*counter));
        let callers = CallerCost::ALL.into_iter().map(Self::Caller);
        [Self::Step, Self::Switch].into_iter().chain(counters.filter(|of| of.unit().is_some())).chain(callers)
    }

    /// The key in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Switch => "switch",
            Self::Counter(counter) => COUNTERS[counter as usize].name,
            Self::Caller(cost) => cost.key().0,
        }
    }

    /// The unit in a file; `None` for a counter of time, which cannot cost anything.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::Step => Some("ns/step"),
            Self::Switch => Some("ns/switch"),
            Self::Counter(counter) => match COUNTERS[counter as usize].unit {
                "pages" => Some("ns/page"),
                "bytes" => Some("ns/byte"),
                "requests" => Some("ns/request"),
                "events" => Some("ns/event"),
                _ => None,
            },
            Self::Caller(cost) => Some(cost.key().1),
        }
    }
}

/// One cost with its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// The thing that costs this.
    pub of: CostOf,
    /// The cost in picoseconds.
    pub ps: u64,
    /// The source of the figure.
    pub source: String,
}

/// All costs on some machine. A clone is cheap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostTable {
    machine: Arc<str>,
    costs: Arc<[Cost]>,
    step_ns: u64,
    switch_ns: u64,
    /// The counters that cost something.
    counters: Arc<[(Counter, u64)]>,
}

impl CostTable {
    /// A table of these costs.
    pub fn new(machine: &str, mut costs: Vec<Cost>) -> Self {
        costs.sort_by_key(|cost| CostOf::all().position(|of| of == cost.of));
        let whole = |of| costs.iter().find(|cost| cost.of == of).map_or(0, |cost| cost.ps / 1000);
        let counters = costs.iter().filter_map(|cost| match cost.of {
            CostOf::Counter(counter) if cost.ps > 0 => Some((counter, cost.ps)),
            _ => None,
        });
        Self {
            machine: machine.into(),
            step_ns: whole(CostOf::Step),
            switch_ns: whole(CostOf::Switch),
            counters: counters.collect(),
            costs: costs.into(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Each cost with its source, in the order of [`CostOf::all`].
    pub fn costs(&self) -> &[Cost] {
        &self.costs
    }

    /// The cost of this to a caller, in picoseconds.
    pub fn caller_ps(&self, cost: CallerCost) -> u64 {
        self.costs.iter().find(|known| known.of == CostOf::Caller(cost)).map_or(0, |known| known.ps)
    }

    pub(crate) fn step_ns(&self) -> u64 {
        self.step_ns
    }

    pub(crate) fn switch_ns(&self) -> u64 {
        self.switch_ns
    }

    /// The cost of everything that a CPU has counted, in picoseconds, modulo 2^64. A difference between two such values
    /// is right as long as it is less than half a year.
    #[inline]
    pub(crate) fn worth_ps(&self, local: &Local) -> u64 {
        let worth = self.counters.iter().map(|(counter, ps)| local.counted(*counter).wrapping_mul(*ps));
        worth.fold(0, u64::wrapping_add)
    }
}
