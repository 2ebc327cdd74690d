//! What follows when a writer has dirtied pages under a law: the snapshot, the decision, its carrying
//! out.
//!
//! Owns: the writer's account, when it is due, the snapshot, the pauses, the writing in the writer's
//! place.
//! Does not own: the law; the hard guard, which is asked before pages are dirtied (`dirty`).
//! Invariants: each shared counter is read once a snapshot. No lock is held while the writer waits or
//! writes. A device that keeps failing tells its writers instead of making them wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::law::{AnyLaw, Decision, EXCEEDED_PAGES, Kept, LimitPages, Pace, Pause, PauseCause, Then, WokenBy};
use super::view::{DeviceCounts, GlobalCounts, KnobValues, TaskCounts, View};
use super::{Driver, Ruling};
use crate::cache::file::FileInner;
use crate::cache::wait::lock;
use crate::counters::Counter;
use crate::dirty::failing;
use crate::engine::{Engine, either};
use crate::error::Error;
use crate::platform::Platform;
use crate::settings::Knob;
use crate::writeback::device::DeviceState;
use crate::writeback::driver::{FlushOf, PutBack, RunEnd, Taken};
use crate::writeback::schedule::FlushReason;

/// Most pages that are written between two questions to the law, whatever it allows.
const PIECE_PAGES_MAX: u64 = 64;

/// Least limit in bytes that a law is told of: two pages, as in the kernel; with one there is no
/// background below it.
const DIRTY_BYTES_MIN: u64 = 8192;

/// What is kept of a writer: an open file is one.
#[derive(Default)]
pub(crate) struct Payer(Mutex<Option<Account>>);

struct Account {
    unpaid_pages: u64,
    task_pages: u64,
    task: Kept,
}

impl Account {
    fn new(ruling: &Ruling, memory_pages: u64, cpus: u64) -> Self {
        let start = ruling.law.start(memory_pages, cpus);
        if ruling.cpu_pages() == 0 {
            ruling.set_cpu_pages(start.cpu_pages);
        }
        Self { unpaid_pages: 0, task_pages: start.task_pages, task: ruling.law.new_task() }
    }

    fn allowance(&self, device: &DeviceState) -> u64 {
        let exceeded = device.exceeded.load(Ordering::Relaxed);
        if exceeded { self.task_pages.min(EXCEEDED_PAGES) } else { self.task_pages }
    }

    /// What all writers of a CPU may dirty; where that is the only account it knows of devices that are over.
    fn cpu_allowance(&self, ruling: &Ruling, device: &DeviceState) -> u64 {
        let alone = self.task_pages == u64::MAX;
        if alone { ruling.cpu_pages().min(self.allowance(device)) } else { ruling.cpu_pages() }
    }
}

impl<P: Platform> Engine<P> {
    /// How many pages a writer may dirty before the law is asked, at least 1.
    pub(crate) fn allowance_pages(&self, file: &FileInner) -> u64 {
        let Some(ruling) = &self.cache().ruling else { return PIECE_PAGES_MAX };
        self.with_account(ruling, file, |account| {
            let left = account.allowance(&file.device).saturating_sub(account.unpaid_pages);
            left.min(account.cpu_allowance(ruling, &file.device)).clamp(1, PIECE_PAGES_MAX)
        })
    }

    /// The writer's account, opened when it is first asked for.
    fn with_account<T>(&self, ruling: &Ruling, file: &FileInner, look: impl FnOnce(&mut Account) -> T) -> T {
        let open = || {
            let memory_pages = u64::from(self.cache().frames.total());
            Account::new(ruling, memory_pages, self.platform().counters().threads())
        };
        look(lock(&file.payer.0).get_or_insert_with(open))
    }

    /// The writer has dirtied so many pages more. Asks the law if that is due, and does what it says.
    ///
    /// # Errors
    /// When it would have to wait for a device that keeps failing.
    pub(crate) async fn balance(self: &Arc<Self>, file: &Arc<FileInner>, dirtied: u64) -> Result<(), Error> {
        let Some(ruling) = &self.cache().ruling else { return Ok(()) };
        if dirtied == 0 || !self.is_due(ruling, file, dirtied) {
            return Ok(());
        }
        self.local().count(Counter::BalanceCalls, 1);
        let device = &file.device;
        let mut so_far = TaskCounts::default();
        loop {
            let (decision, pace) = self.decide(ruling, file, &so_far);
            so_far.pass = so_far.pass.saturating_add(1);
            so_far.written_last = 0;
            if pace.start_background {
                self.start_background(device);
            }
            if decision == Decision::Continue {
                return Ok(());
            }
            if let Some(error) = failing::keeps_failing(file).or_else(|| device.keeps_failing()) {
                return Err(error.into());
            }
            match decision {
                Decision::Continue => return Ok(()),
                Decision::WriteBack { pages } => {
                    so_far.written_last = self.write_back(device, pages).await;
                    so_far.written += so_far.written_last;
                    self.local().count(Counter::BalanceWrittenPages, so_far.written_last);
                }
                Decision::Pause(pause) => {
                    self.pause(device, pause).await;
                    if pause.then == Then::Return {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Adds to the writer's account; whether the law is to be asked now. A CPU's account is settled
    /// whenever any writer's is.
    fn is_due(&self, ruling: &Ruling, file: &FileInner, dirtied: u64) -> bool {
        let local = self.local();
        let of_cpu = local.owe(dirtied);
        let due = self.with_account(ruling, file, |account| {
            account.unpaid_pages = account.unpaid_pages.saturating_add(dirtied);
            account.unpaid_pages >= account.allowance(&file.device)
                || of_cpu >= account.cpu_allowance(ruling, &file.device)
        });
        if due {
            local.pay();
        }
        due
    }

    /// Takes a snapshot and has the law decide from it.
    fn decide(&self, ruling: &Ruling, file: &FileInner, so_far: &TaskCounts) -> (Decision, Pace) {
        let device = &file.device;
        let mut view = self.view_of(Some(device));
        let exceeded = device.exceeded.load(Ordering::Relaxed);
        let (decision, pace) = self.with_account(ruling, file, |account| {
            view.task = TaskCounts { dirtied: account.unpaid_pages, ..*so_far };
            let mut pace = Pace {
                task_pages: account.task_pages,
                cpu_pages: ruling.cpu_pages(),
                exceeded,
                unpaid_pages: account.unpaid_pages,
                start_background: false,
            };
            let task = &mut *account.task;
            let decision = ruling.ask(&device.law_memory, |law, device, shared| {
                law.decide(&view, task, &mut **device, &mut **shared, &mut pace)
            });
            account.task_pages = pace.task_pages;
            account.unpaid_pages = pace.unpaid_pages;
            (decision, pace)
        });
        if let Decision::Pause(pause) = decision {
            let (law, max) = (ruling.law.name(), ruling.law.pause_ns_max());
            assert!(pause.ns <= max, "{law} asks for a pause of {} ns, and its longest is of {max}", pause.ns);
        }
        ruling.set_cpu_pages(pace.cpu_pages);
        if pace.exceeded != exceeded {
            device.exceeded.store(pace.exceeded, Ordering::Relaxed);
        }
        let (reads, local) = (view.reads(), self.local());
        local.count(Counter::BalancePasses, 1);
        local.count(Counter::BalanceGlobalReads, reads.global);
        local.count(Counter::BalanceDirtyReads, reads.dirty);
        local.count(Counter::BalanceDeviceReads, reads.device);
        (decision, pace)
    }

    /// The snapshot: each shared counter is read once.
    pub(crate) fn view_of(&self, device: Option<&DeviceState>) -> View {
        let cache = self.cache();
        let free = u64::from(cache.frames.free_count());
        let total = u64::from(cache.frames.total());
        let writeback = cache.dirty.writeback();
        let global = GlobalCounts {
            free,
            reserve: u64::from(cache.frames.low_watermark()),
            inactive_file: total.saturating_sub(free),
            dirty: cache.dirty.held().saturating_sub(writeback),
            writeback,
            ..GlobalCounts::default()
        };
        let counts = device.map(|device| {
            let writeback = device.writeback_pages.load(Ordering::Relaxed);
            DeviceCounts {
                reclaimable: device.budget.used().saturating_sub(writeback),
                writeback,
                dirtied: device.dirtied_pages.load(Ordering::Relaxed),
                written: device.written_pages.load(Ordering::Relaxed),
                bandwidth: device.bandwidth_pages().unwrap_or(0),
                flushing: device.flushing.load(Ordering::Relaxed) > 0,
            }
        });
        let mut view = View::new(self.platform().now(), global, counts.unwrap_or_default());
        view.cpus = self.platform().counters().threads().max(1);
        view.memory_pages = total;
        view.knobs = self.knob_values(device);
        view
    }

    fn knob_values(&self, device: Option<&DeviceState>) -> KnobValues {
        let settings = &self.cache().settings;
        let knob = |knob| device.map_or_else(|| settings.get(knob), |device| device.knob(settings, knob));
        KnobValues {
            dirty_ratio: settings.get(Knob::DirtyRatio),
            dirty_bytes: match settings.get(Knob::DirtyBytes) {
                0 => 0,
                bytes => bytes.max(DIRTY_BYTES_MIN),
            },
            // A kernel has one for all devices.
            background_ratio: settings.get(Knob::BackgroundRatio),
            background_bytes: settings.get(Knob::BackgroundBytes),
            background_centisecs: knob(Knob::BackgroundCentisecs),
            min_ratio: knob(Knob::MinRatio),
            min_ratio_sum: self.cache().min_ratio_sum.load(Ordering::Relaxed),
            max_ratio: knob(Knob::MaxRatio),
            min_bytes: knob(Knob::MinBytes),
            max_bytes: knob(Knob::MaxBytes),
            strict_limit: knob(Knob::StrictLimit) > 0,
        }
    }

    /// Has background writeback of the device, or of all, start.
    pub(crate) fn start_background(self: &Arc<Self>, device: &DeviceState) {
        match &self.driver {
            Driver::FlusherEach => device.flusher.raise(),
            Driver::Own(driver) => driver.kick(Arc::new(FlushOf(Arc::clone(self)))),
        }
    }

    /// Waits as the law says, and notes it.
    async fn pause(&self, device: &DeviceState, pause: Pause) {
        let noted = NotedPause::begins(self, device, pause.cause, pause.ns);
        let mut ends = pin!(self.platform().sleep_until(noted.began.after(pause.ns)));
        match pause.woken_by {
            WokenBy::Time => ends.await,
            WokenBy::CongestionClears => either(self.cache().congestion_clears(), &mut ends).await,
        }
    }

    /// Writes up to so many pages of the device in the caller's place, waiting for requests; returns
    /// how many. Ends early when there is nothing more that can be written now.
    async fn write_back(self: &Arc<Self>, device: &Arc<DeviceState>, pages: u64) -> u64 {
        let mut written = 0;
        // A file has more turns than one only if it gave pages in the last.
        let mut turns_left = device.unclean_count();
        while written < pages && turns_left > 0 {
            let Some(mut taken) = Taken::next(self, device, FlushReason::Background, None) else {
                break;
            };
            let before = written;
            while written < pages {
                match self.write_run(&mut taken, pages - written, true).await {
                    RunEnd::Pages(count) => written += count,
                    _ => break,
                }
            }
            self.put_back(taken, PutBack::More);
            turns_left -= usize::from(written == before);
        }
        written
    }

    /// What the law says about a device, if there is a law.
    pub(crate) fn ask_law<T>(
        &self,
        device: &DeviceState,
        question: impl FnOnce(&dyn AnyLaw, &View, &mut Kept, &mut Kept) -> T,
    ) -> Option<T> {
        let ruling = self.cache().ruling.as_ref()?;
        let view = self.view_of(Some(device));
        Some(ruling.ask(&device.law_memory, |law, own, shared| question(law, &view, own, shared)))
    }

    /// The law's limits for a device.
    pub(crate) fn law_limits(&self, device: &DeviceState) -> Option<LimitPages> {
        self.ask_law(device, |law, view, own, shared| law.limits(view, &mut **own, &mut **shared))
    }
}

/// A pause under way; noted when it ends, or its writer goes away.
pub(crate) struct NotedPause<'a, P: Platform> {
    engine: &'a Engine<P>,
    device: &'a DeviceState,
    cause: PauseCause,
    asked_ns: u64,
    began: crate::platform::Nanos,
}

impl<'a, P: Platform> NotedPause<'a, P> {
    /// It is to last `asked_ns` at most.
    pub(crate) fn begins(engine: &'a Engine<P>, device: &'a DeviceState, cause: PauseCause, asked_ns: u64) -> Self {
        engine.local().count(Counter::ThrottlePauses, 1);
        device.pauses.begins(cause);
        Self { engine, device, cause, asked_ns, began: engine.platform().now() }
    }
}

impl<P: Platform> Drop for NotedPause<'_, P> {
    fn drop(&mut self) {
        let ns = self.engine.platform().now().since(self.began);
        self.engine.local().count(Counter::ThrottleNs, ns);
        self.device.pauses.ends(self.cause, ns, self.asked_ns);
    }
}
