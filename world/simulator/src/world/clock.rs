//! The time within a step: the step's start, and the CPU time that it has used since.
//!
//! The CPU time of a step is a base cost, the time charged by hand, and the sum over the engine's counters of each
//! increment times its cost. Costs are in picoseconds. The CPU carries the fraction of a nanosecond over to its next
//! step, so that many small steps cost as much as they should.
//!
//! Owns: the current instant, the counter blocks of the virtual CPUs.
//! Does not own: the costs (`costs`), the choice of the next step (`shuffle`, `cpu`).
//! Invariants: between steps, and in calls at an instant, the clock stands still.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use afflux_engine::counters::{Counters, Local};

use crate::costs::CostTable;

static WORLDS: AtomicU64 = AtomicU64::new(0);

/// The counters of one virtual CPU, and the part of them that has been charged.
struct CpuLocal {
    local: Local,
    charged_ps: Cell<u64>,
}

thread_local! {
    /// The counter blocks of the world that this thread ran last.
    static LOCALS: Cell<Option<(u64, &'static [CpuLocal])>> = const { Cell::new(None) };
}

/// One thread runs a world at a time: the fields are atomic for safe sharing, not for ordering.
pub(super) struct Clock {
    /// The start of the step with its base cost; within a step also the time charged by hand.
    base_ns: AtomicU64,
    /// True in a step on a CPU with costs: the counters add to the time.
    counting: AtomicBool,
    /// Time charged by hand in a call at an instant. It is added to the CPU, not to the clock.
    charged_ns: AtomicU64,
    /// Until this instant nothing else can happen and the slice lasts, so preemption points do nothing.
    quiet_ns: AtomicU64,
    /// The fraction that earlier steps left on the CPU of this step.
    carry_ps: AtomicU64,
    /// The virtual CPU that runs the step.
    cpu: AtomicUsize,
    cpus: usize,
    costs: Option<CostTable>,
    counters: Counters,
    /// Distinguishes this world's counter blocks from another's on the same thread; not part of any trace.
    world: u64,
}

impl Clock {
    /// `costs` is `None` if steps have a fixed cost.
    pub(super) fn new(cpus: usize, costs: Option<CostTable>) -> Self {
        Self {
            base_ns: AtomicU64::new(0),
            counting: AtomicBool::new(false),
            charged_ns: AtomicU64::new(0),
            quiet_ns: AtomicU64::new(0),
            carry_ps: AtomicU64::new(0),
            cpu: AtomicUsize::new(0),
            cpus,
            costs,
            counters: Counters::new(),
            world: WORLDS.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    fn locals(&self) -> &'static [CpuLocal] {
        if let Some((world, locals)) = LOCALS.get()
            && world == self.world
        {
            return locals;
        }
        self.make_locals()
    }

    /// A block is not `Sync`, and a platform's reference must outlive the call, so the thread retains the blocks for
    /// ever. That costs some 500 bytes per virtual CPU for each change of worlds on a thread.
    #[cold]
    fn make_locals(&self) -> &'static [CpuLocal] {
        let make = |_| CpuLocal { local: Local::new(&self.counters), charged_ps: Cell::new(0) };
        let locals: &'static [CpuLocal] = Vec::leak((0..self.cpus).map(make).collect());
        LOCALS.set(Some((self.world, locals)));
        locals
    }

    /// The counters of the CPU that runs the step.
    #[inline]
    pub(super) fn local(&self) -> &'static Local {
        &self.locals()[self.cpu.load(Ordering::Relaxed)].local
    }

    /// The virtual CPU that runs the step.
    pub(super) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Picoseconds of the CPU's counters that are not charged yet, including its carry.
    #[inline]
    fn uncharged_ps(&self, charge: bool) -> u64 {
        let Some(costs) = &self.costs else { return 0 };
        let here = &self.locals()[self.cpu.load(Ordering::Relaxed)];
        let worth_ps = costs.worth_ps(&here.local);
        let moved_ps = worth_ps.wrapping_sub(here.charged_ps.get());
        if charge {
            here.charged_ps.set(worth_ps);
        }
        self.carry_ps.load(Ordering::Relaxed).saturating_add(moved_ps)
    }

    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        let base = self.base_ns.load(Ordering::Relaxed);
        if self.counting.load(Ordering::Relaxed) { base + self.uncharged_ps(false) / 1000 } else { base }
    }

    /// Sets the instant at which the clock stands.
    #[inline]
    pub(super) fn set(&self, now_ns: u64) {
        self.base_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Adds CPU time beyond the counters. In a call at an instant the time is stored for the CPU that the call
    /// interrupts.
    #[inline]
    pub(super) fn charge(&self, ns: u64) {
        let standing = self.costs.is_some() && !self.counting.load(Ordering::Relaxed);
        let charged = if standing { &self.charged_ns } else { &self.base_ns };
        charged.store(charged.load(Ordering::Relaxed).saturating_add(ns), Ordering::Relaxed);
    }

    /// Whether nothing can come before a step that is at `now_ns`.
    #[inline]
    pub(super) fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns < self.quiet_ns.load(Ordering::Relaxed)
    }

    pub(super) fn set_quiet(&self, until_ns: u64) {
        self.quiet_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Notes that something will happen at `at_ns`.
    #[inline]
    pub(super) fn disturb(&self, at_ns: u64) {
        self.quiet_ns.store(at_ns.min(self.quiet_ns.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Drops the CPU time used between runs, which belongs to no CPU.
    pub(super) fn forget_uncharged(&self) {
        let Some(costs) = &self.costs else { return };
        for cpu in self.locals() {
            cpu.charged_ps.set(costs.worth_ps(&cpu.local));
        }
        self.charged_ns.store(0, Ordering::Relaxed);
    }

    /// A step on `cpu` begins at `start_ns`.
    pub(super) fn begin(&self, cpu: usize, start_ns: u64, carry_ps: u64) {
        self.cpu.store(cpu, Ordering::Relaxed);
        self.base_ns.store(start_ns, Ordering::Relaxed);
        self.carry_ps.store(carry_ps, Ordering::Relaxed);
        self.counting.store(true, Ordering::Relaxed);
        self.quiet_ns.store(0, Ordering::Relaxed);
    }

    /// A call at an instant begins; its cost goes to `cpu`.
    pub(super) fn begin_call(&self, cpu: usize, at_ns: u64, carry_ps: u64) {
        self.begin(cpu, at_ns, carry_ps);
        self.counting.store(false, Ordering::Relaxed);
    }

    /// Ends the step or call; returns the CPU's nanoseconds since its beginning, and the carry. The clock stands at the
    /// end of the step.
    pub(super) fn end(&self, start_ns: u64) -> (u64, u64) {
        let uncharged_ps = self.uncharged_ps(true);
        let base_ns = self.base_ns.load(Ordering::Relaxed);
        let mut used_ns = (base_ns - start_ns).saturating_add(uncharged_ps / 1000);
        if self.counting.load(Ordering::Relaxed) {
            self.counting.store(false, Ordering::Relaxed);
            self.base_ns.store(start_ns.saturating_add(used_ns), Ordering::Relaxed);
        } else {
            used_ns = used_ns.saturating_add(self.charged_ns.load(Ordering::Relaxed));
            self.charged_ns.store(0, Ordering::Relaxed);
        }
        (used_ns, uncharged_ps % 1000)
    }
}
