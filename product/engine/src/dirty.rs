//! The dirty limits: charges, the free part, and the part for files that cannot be written.
//!
//! Owns: each device's limits, as they follow from knobs, memory, the number of devices and pages that failed; the
//! memory guard, a writer's charge for the pages it dirties; the limit for a file whose writes keep failing, the
//! refusal of its writers.
//! Does not own: the flusher, the pages, the bounds that the policy in force gives; when failed pages are tried again
//! (`writeback`), the answer to a sync.
//! Invariants: under the memory guard all devices together spare frames for readers, and reserve a part for a device
//! added later. They may take a sixteenth in all before they count each other's pages again. A charge is given back
//! when the page is written or cut off, or was not dirtied after all. A charge that fits neither locks, reads nor
//! writes anything that writers to other devices change. Pages that cannot be written stay dirty, and reduce the limit
//! of others only beyond that part, in memory. Where a memory guard bounds these pages, they take nothing of a policy's
//! limit: they count against the writers of their own files, up to the policy's limit. Beyond that limit a file may
//! have few dirty pages until one of its writes succeeds, so many failing files add little each. A writer of a healthy
//! file is refused only if the device itself counts as failing, or if failed pages use up all of its limit.

use std::sync::Arc;

use afflux_device::error::DeviceError;
use afflux_device::settings::Knob;
use afflux_pages::units::PageCount;
use afflux_pages::wait::lock;

use crate::devices::file::{FileInner, FileState};
use crate::devices::payer::Dirtied;
use crate::devices::{DeviceState, Devices, Moment};

/// Takes pages that did not fit the last known state of the other devices, if they fit now.
pub(crate) fn try_take_anew(devices: &Devices, device: &DeviceState, pages: PageCount) -> bool {
    devices.policy.needs().memory_guard && device.admission().try_take_within(guard_pages(devices, device), pages)
}

/// Takes pages that the policy has admitted, as far as the memory guard admits them.
pub(crate) fn try_enter(devices: &Devices, device: &DeviceState, pages: PageCount) -> bool {
    device.admission().try_enter(pages) || {
        refresh_guard(devices, device);
        device.admission().try_enter(pages)
    }
}

/// Recomputes everything that follows from knobs and the number of devices, after one of them changed.
pub(crate) fn divide(devices: &Devices, moment: Moment) -> Vec<Arc<DeviceState>> {
    let all = devices.all();
    let count = all.len().max(1) as u64;
    devices.totals.divide(all.len() as u64, (all_pages(devices) / count).max(LIMIT_PAGES_MIN).0);
    devices.show_knobs();
    let unseen = if count > 1 { dirty_pages_max(devices) / UNSEEN_PART / count } else { PageCount::MAX };
    for device in &all {
        device.failures.replace_extra_pages(extra_pages(devices, device));
        device.charges.unwritable.set_most(roomless_pages_max(devices));
        if devices.policy.needs().memory_guard {
            device.admission().set_unseen(unseen);
        }
        refresh_guard(devices, device);
        device.read_frames().set_limit(reading_pages(devices));
    }
    all.iter().for_each(|device| devices.refresh_bounds(device, moment));
    all
}

/// Pages charged to a device before they are dirtied; unused ones go back on drop.
pub(crate) struct Charge {
    device: Arc<DeviceState>,
    pages: u64,
    spent: Dirtied,
}

impl Charge {
    /// A charge that the device's admission queue has granted.
    pub(crate) fn granted(device: &Arc<DeviceState>, pages: u64) -> Self {
        device.charges.hold(pages);
        Self { device: Arc::clone(device), pages, spent: Dirtied::default() }
    }

    /// A charge so small that its payer was not asked about.
    pub(crate) fn unasked(device: &Arc<DeviceState>, pages: u64) -> Self {
        let mut charge = Self::granted(device, pages);
        charge.spent.unasked = true;
        charge
    }

    /// One page was dirtied, which added `runs` runs: it stays charged until [`uncharge`].
    pub(crate) fn spend(&mut self, runs: i64) {
        self.spent.pages += 1;
        self.spent.runs += runs.max(0) as u64;
        match self.pages.checked_sub(1) {
            Some(left) => self.pages = left,
            // More pages than foreseen became dirty (one was written back meanwhile): never refused.
            None => force_charge(&self.device, 1),
        }
    }

    /// The pages and runs dirtied so far.
    pub(crate) fn spent(&self) -> Dirtied {
        self.spent
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.device.charges.note_dirtied(self.spent.pages);
        // The pages dirtied may be unwritable: they then free their charge again, for the next writer in the queue.
        if self.pages > 0 || self.device.charges.unwritable.has_any() {
            self.device.charges.give_back(self.pages);
        }
    }
}

/// Charges pages that became dirty without an admission.
pub(crate) fn force_charge(device: &DeviceState, pages: u64) {
    device.charges.hold(pages);
    device.admission().force(PageCount(pages));
}

/// Pages are no longer dirty.
pub(crate) fn uncharge(devices: &Devices, device: &DeviceState, pages: u64, moment: Moment) {
    if pages > 0 {
        device.charges.give_back(pages);
        after_cleaning(devices, device, moment);
    }
}

/// After pages of a device became clean: updates waiters, here and on other devices.
pub(crate) fn after_cleaning(devices: &Devices, device: &DeviceState, moment: Moment) {
    apply_failed(devices, device, moment);
    if devices.policy.needs().memory_guard && devices.totals.has_waiters() {
        // The other devices' limits depend on it.
        for other in devices.all().iter().filter(|other| other.admission().waiting() > 0) {
            refresh_guard(devices, other);
        }
    }
}

/// The fewest pages that a device may have dirty, regardless of the knobs.
const LIMIT_PAGES_MIN: PageCount = PageCount(4);

/// The most of the cache that may be dirty, regardless of the knobs, in percent.
const DIRTY_PERCENT_MAX: u64 = 90;

/// The part of the dirty limit that all devices together may take without looking at each other.
const UNSEEN_PART: u64 = 16;

/// The knobs' limit for all devices together.
fn all_pages(devices: &Devices) -> PageCount {
    let total = PageCount(devices.memory_pages());
    match devices.settings.get(Knob::DirtyBytes) {
        0 => total.percent(devices.settings.get(Knob::DirtyRatio)),
        bytes => PageCount::whole_in(bytes).min(total.percent(DIRTY_PERCENT_MAX)),
    }
}

/// The dirty limit: the knobs' limit, or the memory guard's, which is halfway between that and all frames.
fn dirty_pages_max(devices: &Devices) -> PageCount {
    let all = all_pages(devices);
    if devices.policy.needs().memory_guard { (all + PageCount(devices.memory_pages())) / 2 } else { all }
}

/// The most pages that the memory guard lets the device have dirty. A device alone may have the whole limit. Each of
/// several may have two thirds of the others' remainder. So a hung device at its limit does not block devices added
/// later, and the sum stays below the whole.
fn guard_pages(devices: &Devices, device: &DeviceState) -> PageCount {
    let (all, extra) = (dirty_pages_max(devices), PageCount(extra_pages(devices, device)));
    if devices.totals.devices() < 2 {
        return all.max(LIMIT_PAGES_MIN) + extra;
    }
    let others = PageCount(devices.totals.held()).saturating_sub(device.admission().pages());
    (all.saturating_sub(others) * 2 / 3).max(LIMIT_PAGES_MIN) + extra
}

/// Recomputes a device's guard, which depends on the dirty pages of the others. Called for a device with waiters when
/// another one gives pages back.
pub(crate) fn refresh_guard(devices: &Devices, device: &DeviceState) {
    if devices.policy.needs().memory_guard {
        device.admission().set_guard(guard_pages(devices, device));
    }
}

/// An equal part of a quarter of the frames that may not be dirty: half of those are for reads in flight.
fn unwritable_part(devices: &Devices) -> u64 {
    let clean = PageCount(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 4 / devices.totals.devices().max(1)).0
}

/// The most frames that one device's reads in flight may hold: an equal part of half of the frames that may not be
/// dirty. So readers of a hung device leave memory to the others.
fn reading_pages(devices: &Devices) -> u64 {
    let count = devices.totals.devices().max(1);
    let clean = PageCount(devices.memory_pages()).saturating_sub(dirty_pages_max(devices));
    (clean / 2 / count).max(LIMIT_PAGES_MIN).0
}

/// The most dirty pages that the device may have for one cause that prevents their writes: a part of the device's limit
/// in bytes, or the policy's own limit if that is lower. Where the memory guard bounds them alone, the policy's limit
/// is what its user asked for, and a writer may not pass it because its own pages do not count.
pub(crate) fn unwritable_pages_max(devices: &Devices, device: &DeviceState, moment: Moment) -> u64 {
    let part_pages = devices.totals.part_pages();
    if !devices.policy.needs().memory_guard {
        return part_pages;
    }
    let limits = devices.ask(device, moment, |policy, view, own, shared| policy.limits(view, own, shared));
    part_pages.min(limits.dirty.max(LIMIT_PAGES_MIN.0))
}

/// The most failed pages that a higher limit makes up for.
fn extra_pages_max(devices: &Devices) -> u64 {
    devices.totals.part_pages().min(unwritable_part(devices))
}

/// The most pages that take nothing of the policy's limit because they cannot be written. The memory guard, if there is
/// one, is the bound.
fn roomless_pages_max(devices: &Devices) -> u64 {
    if devices.policy.needs().memory_guard { u64::MAX } else { extra_pages_max(devices) }
}

/// Dirty pages allowed beyond the device's limit, because as many failed.
fn extra_pages(devices: &Devices, device: &DeviceState) -> u64 {
    match device.failures.pages() {
        0 => 0,
        failed => failed.min(extra_pages_max(devices)),
    }
}

/// A file whose writes keep failing may have this part of its device's dirty limit dirty
/// ([`unwritable_pages_max`]). Beyond that, or once all failed pages of the device pass the limit, its writers are
/// refused.
const KEEPS_FAILING_PART: u64 = 8;
/// A file may have this part dirty after a write failed. Beyond that its writers wait: the extra pages of the limit are
/// for other files.
const FAILED_PART: u64 = 2;
/// While the device's failed pages are over the limit, a healthy file may have this part dirty of what was written of
/// it since its last failure, and a page. Beyond that its writers wait until the file's dirty pages have been tried.
const WRITTEN_PART: u64 = 8;

/// Recomputes the device's limits if its failed pages have changed.
pub(crate) fn apply_failed(devices: &Devices, device: &DeviceState, moment: Moment) {
    let room_changes = || {
        let pages = extra_pages(devices, device);
        device.failures.replace_extra_pages(pages) != pages
    };
    while room_changes() {
        devices.refresh_bounds(device, moment);
        refresh_guard(devices, device);
    }
}

/// Whether failed pages hold half of the device's limit: other writers get the small remainder page by page.
pub(crate) fn is_half_failed(devices: &Devices, device: &DeviceState) -> bool {
    device.failures.pages() > devices.totals.part_pages() / 2
}

/// The decision about a writer that wants to dirty more of a file.
enum Verdict {
    Go,
    /// The file's last write failed, and it has many dirty pages: wait until its retries succeed or give up. Or a write
    /// is set aside: wait until it ends. If the device itself hangs, the file may use the limit as all others.
    Wait,
    /// Other files' failed pages are over the limit, and this file has not shown yet that it can be written: wait until
    /// its dirty pages have been tried.
    WaitForTrial,
    Refuse(DeviceError),
}

/// How the file's last writes ended.
enum FileIs {
    Healthy,
    Failed,
    KeepsFailing,
}

/// The dirty pages of files that failed: those that failed, and others, which wait for the file's next try.
fn failed_pages(device: &DeviceState) -> u64 {
    device.failures.pages().max(device.charges.unwritable.failed_pages())
}

/// The dirty pages that a healthy file may have while the device's failed pages are over the limit.
fn trial_pages(state: &FileState) -> u64 {
    (state.failures.written_pages() / WRITTEN_PART).max(1)
}

fn verdict(devices: &Devices, file: &FileInner, pages: u64, moment: impl FnOnce() -> Moment) -> Verdict {
    let device = &file.device;
    // Read without the lock: writers of healthy files check nothing else.
    if device.failures.pages() == 0 {
        return Verdict::Go;
    }
    // The policy is asked with no lock held.
    let most = unwritable_pages_max(devices, device, moment());
    let is_device_over = failed_pages(device).saturating_add(pages) > most;
    let (error, state_of, dirty, runs, needs_trial) = {
        let state = lock(&file.state);
        let failures = &state.failures;
        if failures.is_aside() && !state.is_discarded() && !device.hang().is_stalled() {
            return Verdict::Wait;
        }
        if state.is_discarded() {
            return Verdict::Go;
        }
        let error = failures.error().filter(|_| failures.in_row() > 0);
        let state_of = match (error, failures.is_failing()) {
            (None, _) => FileIs::Healthy,
            (Some(_), false) => FileIs::Failed,
            (Some(_), true) => FileIs::KeepsFailing,
        };
        let (dirty, runs) = (state.dirty_pages(), state.dirty_runs() as u64);
        // Withheld pages are not tried before their holder lets go.
        let has_most = dirty > 0 && dirty.saturating_add(pages) > trial_pages(&state);
        let needs_trial = has_most && !state.withheld.has_any_in(&(0..u64::MAX)) && !device.hang().is_stalled();
        (error, state_of, PageCount(dirty), runs, needs_trial)
    };
    // The device's line is locked for the prices, after the file.
    let is_over = |part: u64| {
        let worth = device.admission().pages_worth(dirty, runs);
        is_device_over || worth.0.saturating_add(pages) > (most / part).max(1)
    };
    match (state_of, error.or_else(|| device.failures.keeps_failing())) {
        // All files of the device fail one after the other: this one would fail, too.
        (FileIs::Healthy, Some(error)) if is_device_over => Verdict::Refuse(error),
        (FileIs::Healthy, _) if is_device_over && needs_trial => Verdict::WaitForTrial,
        (FileIs::KeepsFailing, Some(error)) if is_over(KEEPS_FAILING_PART) => Verdict::Refuse(error),
        (FileIs::Failed, _) if is_over(FAILED_PART) => Verdict::Wait,
        _ => Verdict::Go,
    }
}

/// How many pages a file may dirty at a time, if the device's failed pages are over the limit and the file has yet to
/// show that it can be written.
pub(crate) fn trial_piece_pages(devices: &Devices, file: &FileInner, moment: impl FnOnce() -> Moment) -> Option<u64> {
    let device = &file.device;
    if device.failures.pages() == 0 {
        return None;
    }
    let pages = trial_pages(&lock(&file.state));
    let is_over = failed_pages(device).saturating_add(pages) > unwritable_pages_max(devices, device, moment());
    is_over.then_some(pages)
}

/// Whether a writer that wants to dirty `pages` more pages of the file neither waits for it nor is refused because of
/// it.
pub(crate) fn may_admit(devices: &Devices, file: &FileInner, pages: u64, moment: impl FnOnce() -> Moment) -> bool {
    matches!(verdict(devices, file, pages, moment), Verdict::Go)
}

/// Admits a writer that wants to dirty `pages` more pages of the file, or refuses it. `waits` is called before it
/// waits; its answer is dropped afterwards.
pub(crate) async fn admit<N>(
    devices: &Devices,
    file: &Arc<FileInner>,
    pages: u64,
    moment: impl Fn() -> Moment,
    waits: impl FnOnce() -> N,
) -> Result<(), DeviceError> {
    let decided = || match verdict(devices, file, pages, &moment) {
        Verdict::Go => Some(Ok(())),
        Verdict::Wait => None,
        Verdict::WaitForTrial => {
            // Its few pages would stay below all thresholds of the flusher. A waiter checks again after each write.
            file.wake_flusher_at(&mut lock(&file.state), moment().now);
            None
        }
        Verdict::Refuse(error) => Some(Err(error)),
    };
    match decided() {
        Some(decided) => decided,
        None => {
            let _noted = waits();
            file.queue.until(decided).await
        }
    }
}

/// The error for a writer of the file that would wait to be admitted. The file's writes keep failing, or the device's.
/// Or no charge will be given back, because pages whose writes keep failing have all of them.
pub(crate) fn refusal(file: &FileInner) -> Option<DeviceError> {
    let device = &file.device;
    file_keeps_failing(file).or_else(|| device.failures.keeps_failing()).or_else(|| all_charged_fail(device))
}

fn file_keeps_failing(file: &FileInner) -> Option<DeviceError> {
    if file.device.failures.pages() == 0 {
        return None;
    }
    let state = lock(&file.state);
    state.failures.error().filter(|_| state.failures.is_failing())
}

/// Whether the writer's file may get a write that finds out whether the device hangs.
pub(crate) fn may_try(file: &FileInner) -> bool {
    let device = &file.device;
    device.hang().is_stalled() && device.charges.unwritable.has_any() && !lock(&file.state).failures.is_unwritable()
}

/// The last write error, if all pages charged to the device belong to files whose writes keep failing.
fn all_charged_fail(device: &DeviceState) -> Option<DeviceError> {
    let failing = device.failures.failing_pages();
    if failing == 0 || device.admission().pages().0 > failing {
        return None;
    }
    device.failures.last_error()
}

/// Has the waiters in the device's line check whether they are refused, if no charge will be given back. To be called
/// after each failed write.
pub(crate) fn end_waits(device: &DeviceState) {
    if all_charged_fail(device).is_some() {
        device.admission().device_changed();
    }
}
