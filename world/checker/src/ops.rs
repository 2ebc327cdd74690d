//! The operations of a scenario, and the checks right after each.
//!
//! Owns: the calls of the engine, the access rules for files that tasks share, the check of errors for a cause.
//! Does not own: the order of tasks (`world`), the phases of a run (`run`).
//! Invariants: every answer of the engine is checked against the model before the task goes on.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use afflux_engine::{DeviceError, Error, PinnedPages};
use afflux_reference::{Ending, Mismatch, Stamp, pattern};
use afflux_simulator::{Disk, Fault, FaultTarget};

use crate::bench::{ScenarioBench, Shared};
use crate::excuses::{ErrorSource, FailureCounts, wait_for_untold_loss};
use crate::locking::lock;
use crate::quiesce::quiesce;
use crate::text::{Op, fault_what};

/// A task's use of a slot: the file in the slot stays the same until its end, unless it is discarded.
struct Use<'a> {
    bench: &'a ScenarioBench,
    slot: usize,
    shared: Arc<Shared>,
    /// Failed requests when the operation began.
    before: FailureCounts,
}

/// The smallest allowed `hang_error_ms`.
const HANG_ERROR_NS_MIN: u64 = 10_000_000_000;

/// The engine counts a request a moment before the disk has it.
const HANDED_OVER_NS_MAX: u64 = 100_000;

/// Whether the disk was ever silent for so long that the engine may refuse its writers and syncs.
fn hung_for_long(disk: &Disk) -> bool {
    disk.longest_stall_ns() + HANDED_OVER_NS_MAX >= HANG_ERROR_NS_MIN
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        lock(&self.bench.slot_use[self.slot]).users -= 1;
    }
}

impl<'a> Use<'a> {
    async fn begin(bench: &'a ScenarioBench, slot: u64) -> Self {
        let slot = slot as usize % bench.slots.len();
        let mut pause_ns = 50_000;
        while lock(&bench.slot_use[slot]).exclusive {
            bench.sleep_ns(pause_ns).await;
            pause_ns = (2 * pause_ns).min(20_000_000);
        }
        lock(&bench.slot_use[slot]).users += 1;
        let shared = Arc::clone(&lock(&bench.slots[slot]));
        let before = FailureCounts::now(bench, &shared);
        Self { bench, slot, shared, before }
    }

    fn look(&self) -> Stamp {
        lock(&self.shared.model).look()
    }

    fn discarded(&self) -> bool {
        self.shared.discarded.load(Ordering::Relaxed)
    }

    fn report_mismatch(&self, what: &str, check: Result<(), Mismatch>) {
        if let Err(error) = check {
            let slot = self.slot;
            self.bench.fail(format!("{what} of file {slot}: {error}"));
        }
    }

    /// Fails the run unless the history of the file and its device explains the error.
    fn excuse(&self, source: ErrorSource, what: &str, error: Error) {
        let bench = self.bench;
        let disk = &bench.disks[self.shared.device];
        let excused = match error {
            Error::Discarded => self.discarded(),
            Error::Device(DeviceError::Hung) => hung_for_long(disk),
            Error::Device(_) => self.discarded() || self.before.causes(bench, &self.shared).explain(source),
            _ => false,
        };
        if !excused {
            bench.fail(format!("{what} of file {} failed without a cause: {error} ({error:?})", self.slot));
        }
    }

    async fn check_read(&self, what: &str, since: Stamp, offset: u64, len: u64, got: &[u8]) {
        let check = self.compare(since, offset, len, got);
        if check.is_err() && wait_for_untold_loss(self.bench, &self.shared).await {
            return;
        }
        self.report_mismatch(what, check);
    }

    fn compare(&self, since: Stamp, offset: u64, len: u64, got: &[u8]) -> Result<(), Mismatch> {
        let model = lock(&self.shared.model);
        // After a discard old bytes may come from the disk again, but never bytes of another file.
        if self.discarded() {
            model.check_bytes(Stamp::default(), offset, got)
        } else {
            model.check_read(since, offset, len, got)
        }
    }
}

/// Polls `operation` for at most `after_us`, then drops it.
async fn cut_short<T>(bench: &ScenarioBench, after_us: u64, operation: impl Future<Output = T>) -> Option<T> {
    let mut operation = pin!(operation);
    let mut timer = pin!(bench.sleep_ns(after_us * 1000));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = operation.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}

pub(crate) async fn perform(bench: &ScenarioBench, op: Op) {
    match op {
        Op::Read { file, offset, len } => read(bench, file, offset, len, u64::MAX).await,
        Op::CancelRead { file, offset, len, after_us } => read(bench, file, offset, len, after_us).await,
        Op::TryRead { file, offset, len } => try_read(bench, file, offset, len).await,
        Op::ReadPinned { file, offset, len, hold_us } => read_pinned(bench, file, offset, len, hold_us, u64::MAX).await,
        Op::CancelPinned { file, offset, len, after_us } => read_pinned(bench, file, offset, len, 0, after_us).await,
        Op::TryReadPinned { file, offset, len, hold_us } => try_read_pinned(bench, file, offset, len, hold_us).await,
        Op::Write { file, offset, len } => write(bench, file, offset, len, u64::MAX).await,
        Op::CancelWrite { file, offset, len, after_us } => write(bench, file, offset, len, after_us).await,
        Op::TryWrite { file, offset, len } => try_write(bench, file, offset, len).await,
        Op::SetSize { file, size } => set_size(bench, file, size, u64::MAX).await,
        Op::CancelSetSize { file, size, after_us } => set_size(bench, file, size, after_us).await,
        Op::Punch { file, offset, len } => punch(bench, file, offset, len).await,
        Op::Sync { file, offset, len } => sync(bench, file, offset, len, u64::MAX).await,
        Op::CancelSync { file, offset, len, after_us } => sync(bench, file, offset, len, after_us).await,
        Op::Drain { device } => drain(bench, device).await,
        Op::Discard { file, remove } => discard(bench, file, remove != 0).await,
        Op::Invalidate { file } => invalidate(bench, file).await,
        Op::HostChange { file, size, offset, len } => host_change(bench, file, size, offset, len).await,
        Op::Reopen { file } => reopen(bench, file).await,
        Op::Rest {} => quiesce(bench).await,
        Op::Sleep { us } => bench.sleep_ns(us * 1000).await,
        trouble => make_trouble(bench, trouble),
    }
}

async fn read(bench: &ScenarioBench, file: u64, offset: u64, len: u64, after_us: u64) {
    let own = Use::begin(bench, file).await;
    let mut bytes = vec![0xa5; len as usize];
    let since = own.look();
    match cut_short(bench, after_us.min(1 << 40), bench.engine.read(&own.shared.file, offset, &mut bytes)).await {
        Some(Ok(count)) => own.check_read("read", since, offset, len, &bytes[..count]).await,
        Some(Err(error)) => own.excuse(ErrorSource::Own, "read", error),
        None => {}
    }
}

async fn try_read(bench: &ScenarioBench, file: u64, offset: u64, len: u64) {
    let own = Use::begin(bench, file).await;
    let mut bytes = vec![0xa5; len as usize];
    let since = own.look();
    if let Some(count) = bench.engine.try_read(&own.shared.file, offset, &mut bytes) {
        own.check_read("try_read", since, offset, len, &bytes[..count]).await;
    }
}

fn pinned_bytes(pages: &PinnedPages) -> Vec<u8> {
    pages.slices().flatten().copied().collect()
}

/// Checks that the bytes of a guard are right at its begin, and do not change while it is held.
async fn hold(own: &Use<'_>, since: Stamp, offset: u64, len: u64, hold_us: u64, pages: PinnedPages) {
    let bench = own.bench;
    let bytes = pinned_bytes(&pages);
    if bytes.len() != pages.len() {
        bench.fail(format!("a guard of {} bytes shows {}", pages.len(), bytes.len()));
    }
    own.check_read("pinned read", since, offset, len, &bytes).await;
    bench.guards_held.fetch_add(1, Ordering::Relaxed);
    bench.sleep_ns(hold_us * 1000).await;
    if pinned_bytes(&pages) != bytes {
        bench.fail(format!("a guard of file {} at {offset} changed while it was held", own.slot));
    }
    drop(pages);
    bench.guards_held.fetch_sub(1, Ordering::Relaxed);
}

async fn read_pinned(bench: &ScenarioBench, file: u64, offset: u64, len: u64, hold_us: u64, after_us: u64) {
    let own = Use::begin(bench, file).await;
    let since = own.look();
    let read = bench.engine.read_pinned(&own.shared.file, offset, len as usize);
    match cut_short(bench, after_us.min(1 << 40), read).await {
        Some(Ok(Some(pages))) => hold(&own, since, offset, len, hold_us, pages).await,
        Some(Err(error)) => own.excuse(ErrorSource::Own, "pinned read", error),
        Some(Ok(None)) | None => {}
    }
}

async fn try_read_pinned(bench: &ScenarioBench, file: u64, offset: u64, len: u64, hold_us: u64) {
    let own = Use::begin(bench, file).await;
    let since = own.look();
    if let Some(pages) = bench.engine.try_read_pinned(&own.shared.file, offset, len as usize) {
        hold(&own, since, offset, len, hold_us, pages).await;
    }
}

async fn write(bench: &ScenarioBench, file: u64, offset: u64, len: u64, after_us: u64) {
    let own = Use::begin(bench, file).await;
    let version = bench.new_version();
    let mut bytes = vec![0; len as usize];
    pattern(version, offset, &mut bytes);
    let change = lock(&own.shared.model).begin_write(offset, len, version);
    let result = cut_short(bench, after_us.min(1 << 40), bench.engine.write(&own.shared.file, offset, &bytes)).await;
    let ending = if let Some(Ok(())) = result { Ending::Done } else { Ending::Failed };
    lock(&own.shared.model).end(change, ending);
    if let Some(Err(error)) = result {
        own.excuse(ErrorSource::Write, "write", error);
    }
}

/// A refused `try_write` may leave some of the bytes, so the caller has to write all of them again.
async fn try_write(bench: &ScenarioBench, file: u64, offset: u64, len: u64) {
    let own = Use::begin(bench, file).await;
    let version = bench.new_version();
    let mut bytes = vec![0; len as usize];
    pattern(version, offset, &mut bytes);
    let change = lock(&own.shared.model).begin_write(offset, len, version);
    let mut result = Ok(());
    if bench.engine.try_write(&own.shared.file, offset, &bytes).is_none() {
        result = bench.engine.write(&own.shared.file, offset, &bytes).await;
    }
    lock(&own.shared.model).end(change, ending(&Some(result)));
    if let Err(error) = result {
        own.excuse(ErrorSource::Write, "write", error);
    }
}

fn ending<T>(result: &Option<Result<T, Error>>) -> Ending {
    match result {
        Some(Ok(_)) => Ending::Done,
        Some(Err(_)) => Ending::Failed,
        None => Ending::Abandoned,
    }
}

/// The end of a change of shape. A caller that is refused because the device hangs cannot know: a change that the
/// device has already is made once the device goes on.
fn ending_of_shape(result: &Option<Result<(), Error>>) -> Ending {
    match result {
        Some(Err(Error::Device(DeviceError::Hung))) => Ending::Abandoned,
        result => ending(result),
    }
}

async fn set_size(bench: &ScenarioBench, file: u64, size: u64, after_us: u64) {
    let own = Use::begin(bench, file).await;
    let change = lock(&own.shared.model).begin_set_size(size);
    let result = cut_short(bench, after_us.min(1 << 40), bench.engine.set_size(&own.shared.file, size)).await;
    lock(&own.shared.model).end(change, ending_of_shape(&result));
    if let Some(Err(error)) = result {
        own.excuse(ErrorSource::Own, "set_size", error);
    }
}

async fn punch(bench: &ScenarioBench, file: u64, offset: u64, len: u64) {
    let own = Use::begin(bench, file).await;
    let change = lock(&own.shared.model).begin_punch(offset, len);
    let result = bench.engine.punch(&own.shared.file, offset..offset + len).await;
    lock(&own.shared.model).end(change, ending_of_shape(&Some(result)));
    if let Err(error) = result {
        own.excuse(ErrorSource::Write, "punch", error);
    }
}

async fn sync(bench: &ScenarioBench, file: u64, offset: u64, len: u64, after_us: u64) {
    let own = Use::begin(bench, file).await;
    let range = if len == 0 { 0..u64::MAX } else { offset..offset + len };
    let since = own.look();
    let result = cut_short(bench, after_us.min(1 << 40), bench.engine.sync(&own.shared.file, range.clone())).await;
    match result {
        Some(Ok(())) if !own.discarded() => {
            if range == (0..u64::MAX) {
                own.before.failures.settle(&own.shared);
            }
            check_durable(&own, since, range);
        }
        Some(Err(error)) => own.excuse(ErrorSource::Sync, "sync", error),
        _ => {}
    }
}

/// Checks that all data written before the sync began are durable.
fn check_durable(own: &Use<'_>, since: Stamp, range: std::ops::Range<u64>) {
    let disk = &own.bench.disks[own.shared.device];
    let mut model = lock(&own.shared.model);
    if range == (0..u64::MAX) {
        own.report_mismatch("sync", model.check_disk_size(since, disk.durable_size(own.shared.disk_file)));
    }
    for (start, limit) in model.written_ranges() {
        let (start, limit) = (start.max(range.start), limit.min(range.end));
        if start < limit {
            let bytes = disk.durable_bytes(own.shared.disk_file, start, (limit - start) as usize);
            own.report_mismatch("sync: what is durable", model.check_bytes(since, start, &bytes));
        }
    }
    model.note_synced(since, range.start, range.end.saturating_sub(range.start));
}

async fn drain(bench: &ScenarioBench, device: u64) {
    let at = device as usize % bench.devices.len();
    let files = bench.slots.iter().map(|slot| Arc::clone(&lock(slot)));
    let before: Vec<_> = files.map(|shared| (FailureCounts::now(bench, &shared), shared)).collect();
    for (file, error) in bench.engine.drain(bench.devices[at]).await {
        // A file that is in no slot was discarded, or was clean when another replaced it.
        let Some((before, shared)) = before.iter().find(|(_, shared)| shared.file.is_same(&file)) else { continue };
        let excused = match error {
            Error::Discarded => true,
            Error::Device(DeviceError::Hung) => hung_for_long(&bench.disks[at]),
            Error::Device(_) => {
                shared.discarded.load(Ordering::Relaxed) || before.causes(bench, shared).explain(ErrorSource::Sync)
            }
            _ => false,
        };
        if !excused {
            bench.fail(format!("drain of device {at} failed without a cause: {error:?}"));
        }
    }
}

async fn discard(bench: &ScenarioBench, file: u64, remove: bool) {
    let own = Use::begin(bench, file).await;
    let fresh = bench.new_file(own.shared.device, 0);
    if own.shared.discarded.swap(true, Ordering::Relaxed) {
        return;
    }
    *lock(&bench.slots[own.slot]) = Arc::new(fresh);
    bench.engine.discard(&own.shared.file);
    if remove {
        bench.disks[own.shared.device].remove_file(own.shared.disk_file);
    }
}

/// Invalidates a file that did not change on the host. Clean pages may be dropped, but no caller may see a difference.
/// This has to hold even if other tasks work between the look at the host and its use.
async fn invalidate(bench: &ScenarioBench, file: u64) {
    let slot = file as usize % bench.slots.len();
    let shared = Arc::clone(&lock(&bench.slots[slot]));
    let seen = shared.file.change_count();
    let size = bench.disks[shared.device].size(shared.disk_file);
    if size != shared.file.size() {
        bench.sleep_ns(300_000).await;
    }
    bench.engine.try_invalidate(&shared.file, size, seen).await;
}

/// Waits up to a virtual second until no other task uses the slot; returns whether the slot is exclusive now.
async fn exclusively(bench: &ScenarioBench, slot: usize) -> bool {
    if std::mem::replace(&mut lock(&bench.slot_use[slot]).exclusive, true) {
        return false;
    }
    for _ in 0..20_000 {
        if lock(&bench.slot_use[slot]).users == 0 {
            return true;
        }
        bench.sleep_ns(50_000).await;
    }
    lock(&bench.slot_use[slot]).exclusive = false;
    false
}

/// The file, if it is clean and synced. It is synced twice: a change of size that lost its caller may have ended after
/// the first sync, and needs a flush.
async fn quiet_file(bench: &ScenarioBench, slot: usize) -> Option<Arc<Shared>> {
    let shared = Arc::clone(&lock(&bench.slots[slot]));
    let mut synced = bench.engine.sync(&shared.file, 0..u64::MAX).await.is_ok();
    synced &= shared.file.is_clean() && bench.engine.sync(&shared.file, 0..u64::MAX).await.is_ok();
    let disk_size = bench.disks[shared.device].size(shared.disk_file);
    (synced && shared.file.is_clean() && disk_size == shared.file.size()).then_some(shared)
}

async fn host_change(bench: &ScenarioBench, file: u64, size: u64, offset: u64, len: u64) {
    let slot = file as usize % bench.slots.len();
    if !exclusively(bench, slot).await {
        return;
    }
    if let Some(shared) = quiet_file(bench, slot).await {
        let version = bench.new_version();
        let mut bytes = vec![0; len as usize];
        pattern(version, offset, &mut bytes);
        bench.disks[shared.device].change_behind(shared.disk_file, size, offset, &bytes);
        {
            let mut model = lock(&shared.model);
            let write = model.begin_write(offset, len, version);
            model.end(write, Ending::Done);
            let cut = model.begin_set_size(size);
            model.end(cut, Ending::Done);
            let now = model.look();
            model.note_synced(now, 0, u64::MAX);
        }
        let seen = shared.file.change_count();
        bench.engine.try_invalidate(&shared.file, size, seen).await;
    }
    lock(&bench.slot_use[slot]).exclusive = false;
}

async fn reopen(bench: &ScenarioBench, file: u64) {
    let slot = file as usize % bench.slots.len();
    if !exclusively(bench, slot).await {
        return;
    }
    if let Some(shared) = quiet_file(bench, slot).await {
        let disk = &bench.disks[shared.device];
        let size = disk.size(shared.disk_file);
        let file = bench.open(shared.device, shared.disk_file, size);
        let mut fresh = Shared::new(file, shared.device, shared.disk_file, Arc::clone(&shared.model));
        fresh.discarded = Arc::clone(&shared.discarded);
        *lock(&bench.slots[slot]) = Arc::new(fresh);
    }
    lock(&bench.slot_use[slot]).exclusive = false;
}

fn make_trouble(bench: &ScenarioBench, op: Op) {
    let disk = |device: u64| &bench.disks[device as usize % bench.disks.len()];
    match op {
        Op::Hang { device } => disk(device).hang(),
        Op::Release { device } => disk(device).release(),
        Op::ClearFaults { device } => disk(device).clear_faults(),
        Op::Capacity { device, bytes } => disk(device).set_capacity(bytes),
        Op::Knob { number, value } => {
            let knobs: Vec<_> = bench.engine.settings().all().collect();
            let (knob, _) = knobs[number as usize % knobs.len()];
            let _ = bench.engine.set_knob(knob, value);
        }
        Op::Fault { device, target, file, offset, len, times, per_mille, what, arg } => {
            use FaultTarget::{Any, Layout, Read, Sync, Write};
            let file = file.checked_sub(1).map(|file| file as usize % bench.slots.len());
            let shared = file.map(|slot| Arc::clone(&lock(&bench.slots[slot])));
            disk(shared.as_ref().map_or(device, |shared| shared.device as u64)).add_fault(Fault {
                target: [Read, Write, Sync, Layout, Any][target as usize % 5],
                file: shared.map(|shared| shared.disk_file),
                offset,
                len,
                skip: 0,
                times: (times > 0).then_some(times),
                per_mille,
                what: fault_what(what, arg),
            });
        }
        _ => {}
    }
}
