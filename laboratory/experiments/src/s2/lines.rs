//! Cache lines that two CPUs pass to each other, by the form of the lists and by where `high` and `batch` lie.
//!
//! Owns: a model of two CPUs' caches, the lines that a call touches, a row for each layout.
//! Does not own: the allocator (`afflux_kernels::zone`).
//! Invariants: the calls, refills and drains are the allocator's own. A line passes if a CPU without a copy needs it
//! and the other has one. Caches hold everything, so nothing passes for want of space.

use std::collections::BTreeMap;

use afflux_kernels::zone::{BatchedDrain, Form, ListPerClass, Mobility, Temperature, Zone, ZoneTunables};
use afflux_report::{Fields, Row};

use crate::experiment::Watch;
use crate::machine::{rounded, row};

/// 512 MiB: a batch of 31 pages, as in the loops.
const FRAMES: u32 = 1 << 17;
/// Buffers of a page, sent in bursts as in the loop of netperf.
const BURSTS: u32 = 640;
const BURST: usize = 32;
const SENDER: usize = 0;

/// A line that calls touch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// The watermarks, which nobody writes.
    Marks,
    /// The zone's lock, and the buddy lists behind it.
    Lock,
    /// A CPU's lists.
    Lists(usize),
    /// A page's `struct page`.
    Page(u32),
}

/// Where `high` and `batch` lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tunables {
    BesideLists,
    WithMarks,
    WithLock,
}

impl Tunables {
    fn name(self) -> &'static str {
        match self {
            Self::BesideLists => "with the lists",
            Self::WithMarks => "with the watermarks",
            Self::WithLock => "with the lock",
        }
    }

    fn line(self, cpu: usize) -> Line {
        match self {
            Self::BesideLists => Line::Lists(cpu),
            Self::WithMarks => Line::Marks,
            Self::WithLock => Line::Lock,
        }
    }
}

/// The caches of two CPUs: which of them has a copy of a line.
#[derive(Default)]
struct Caches {
    copies: BTreeMap<Line, [bool; 2]>,
    pages_passed: u64,
    others_passed: u64,
}

impl Caches {
    fn read(&mut self, cpu: usize, line: Line) {
        let copies = self.copies.entry(line).or_default();
        let passes = u64::from(!copies[cpu] && copies[1 - cpu]);
        copies[cpu] = true;
        if matches!(line, Line::Page(_)) { self.pages_passed += passes } else { self.others_passed += passes }
    }

    /// A write takes the other CPU's copy away.
    fn write(&mut self, cpu: usize, line: Line) {
        self.read(cpu, line);
        self.copies.insert(line, if cpu == 0 { [true, false] } else { [false, true] });
    }
}

struct Machine<F> {
    zone: Zone<F>,
    tunables: Tunables,
    caches: Caches,
}

impl<F: Form> Machine<F> {
    /// Touches the lines of a call that moved `moved` batches between the lists and the buddy lists.
    fn touch(&mut self, cpu: usize, frame: u32, moved: u64) {
        self.caches.write(cpu, Line::Lists(cpu));
        self.caches.write(cpu, Line::Page(frame));
        (0..moved).for_each(|_| self.caches.write(cpu, Line::Lock));
    }

    fn take(&mut self, cpu: usize) -> Option<u32> {
        let before = self.zone.counted(|counters| counters.refills);
        let frame = self.zone.take(cpu, 0, Mobility::Unmovable, self.zone.watermarks().low, Temperature::Hot)?;
        let refills = self.zone.counted(|counters| counters.refills) - before;
        self.caches.read(cpu, Line::Marks);
        if refills > 0 {
            self.caches.read(cpu, self.tunables.line(cpu));
        }
        self.touch(cpu, frame, refills);
        Some(frame)
    }

    fn free(&mut self, cpu: usize, frame: u32) {
        let before = self.zone.counted(|counters| counters.drains);
        self.zone.free(cpu, frame, 0, Temperature::Hot);
        let drains = self.zone.counted(|counters| counters.drains) - before;
        // Each free compares the count with `high`.
        self.caches.read(cpu, self.tunables.line(cpu));
        self.touch(cpu, frame, drains);
    }
}

fn of<F: Form>(tunables: Tunables, receiver: usize) -> Row {
    let mut machine = Machine { zone: Zone::<F>::new(FRAMES, 2), tunables, caches: Caches::default() };
    for _ in 0..BURSTS {
        let sent: Vec<u32> = (0..BURST).filter_map(|_| machine.take(SENDER)).collect();
        sent.into_iter().for_each(|frame| machine.free(receiver, frame));
        if receiver == SENDER {
            // The other CPU does the same with buffers of its own.
            let own: Vec<u32> = (0..BURST).filter_map(|_| machine.take(1 - SENDER)).collect();
            own.into_iter().for_each(|frame| machine.free(1 - SENDER, frame));
        }
    }
    let buffers = f64::from(BURSTS) * BURST as f64 * if receiver == SENDER { 2.0 } else { 1.0 };
    let per_thousand = |passed: u64| rounded(1000.0 * passed as f64 / buffers, 1);
    let freed = if receiver == SENDER { "the same CPU" } else { "the other CPU" };
    let params = Fields::new().with("part", "lines").with("freed_by", freed).with("tunables", tunables.name());
    let metrics = Fields::new()
        .with("page_lines_per_1000", per_thousand(machine.caches.pages_passed))
        .with("zone_lines_per_1000", per_thousand(machine.caches.others_passed));
    row("s2", F::NAME, params, metrics, Fields::new())
}

/// Runs each layout, with buffers that stay on their CPU and with buffers that are sent.
pub(super) fn run(watch: &mut dyn Watch) {
    for receiver in [SENDER, 1 - SENDER] {
        watch.row(&of::<ListPerClass>(Tunables::BesideLists, receiver));
        watch.row(&of::<BatchedDrain>(Tunables::BesideLists, receiver));
        watch.row(&of::<ZoneTunables>(Tunables::WithMarks, receiver));
        watch.row(&of::<ZoneTunables>(Tunables::WithLock, receiver));
    }
}

#[cfg(test)]
mod tests;
