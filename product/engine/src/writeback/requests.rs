//! Requests of writeback: taking one, submitting it, giving it back; calls without data; holds.
//!
//! Owns: the order of asking for requests, the counts of requests in flight, holds that stop submission for a file.
//! Does not own: which pages a request carries (`batch`), the effect of its end on them (`complete`).
//! Invariants: a counted request is given back once. While a hold lives nothing of its file is submitted.

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::error::DeviceError;
use afflux_device::platform::Platform;
use afflux_device::request::{Completion, Operation, Request};
use afflux_device::settings::PageKnob;
use afflux_pages::memory::FrameMemory;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::batch::Run;
use super::{CallEnds, WriteEnds, Writeback};
use crate::devices::file::FileInner;
use crate::devices::in_flight::{EndedRequest, Load};
use crate::devices::{DeviceState, TransferKind};
use crate::recycler::Boxed;
use crate::trace::EngineEvent;

/// How many requests a waiter may still take without waiting again.
#[derive(Default)]
pub(super) struct RequestAllowance(u32);

impl<P: Platform> Writeback<P> {
    /// Waits for a write request; returns whether it had to wait. If so, the caller then takes up to a batch without
    /// waiting.
    pub(super) async fn try_acquire_request(
        &self,
        device: &DeviceState,
        batch: &mut RequestAllowance,
        for_sync: bool,
    ) -> bool {
        let settings = self.base.settings();
        let depth = device.write_depth(settings);
        let extra = batch.0 > 0 && device.requests().try_count_write(depth + depth / 2);
        batch.0 = batch.0.saturating_sub(1);
        let free = || device.try_count_another(&device.in_flight.terms(), settings, for_sync);
        let waits = !extra && !free();
        if waits {
            let noted = device.in_flight.waits();
            device.requests().write_ended().until(|| free().then_some(())).await;
            drop(noted);
            if device.in_flight.allowed().requests_max.is_none() {
                batch.0 = device.knob(settings, PageKnob::RequestBatch) as u32 - 1;
            }
        }
        let counted = CountedWrite { device, writeback: self };
        device.slots().take(1).await;
        std::mem::forget(counted);
        waits
    }

    /// Waits until a request slot is free, on a device whose calls overlap. True as soon as a sync waits that goes
    /// ahead: the flusher has to see to it.
    pub(super) async fn wait_for_slot_or_sync(&self, device: &DeviceState) -> bool {
        let settings = self.base.settings();
        let decided = || match device.should_sync_go_first() {
            true => Some(true),
            false => device.may_send_write(settings).then_some(false),
        };
        if !device.in_flight.allowed().syncs_pass {
            return false;
        }
        if let Some(gives_way) = decided() {
            return gives_way;
        }
        let _noted = device.in_flight.waits();
        device.requests().write_ended().until(decided).await
    }

    /// Gives a request back that has ended, or was not needed.
    pub(super) fn release_request(&self, device: &DeviceState) {
        device.slots().give_back(1);
        self.uncount_write(device);
    }

    pub(super) fn uncount_write(&self, device: &DeviceState) {
        device.requests().uncount_write();
        device.requests().write_ended().wake_all();
    }

    pub(super) fn submit_write(self: &Arc<Self>, file: &Arc<FileInner>, run: Run, for_sync: bool) {
        let (operation, memory, ends) = self.begin_write(file, run, for_sync);
        self.send_write(operation, memory, ends, for_sync);
    }

    /// Hands a write over to the device, whose end is the end of its pages' writeback.
    pub(super) fn send_write(&self, operation: Operation, memory: FrameMemory, ends: WriteEnds<P>, for_sync: bool) {
        let file = Arc::clone(&ends.file);
        let sink = Boxed::of(&self.spare.writes, ends);
        let request = Request::new(sink, file.backing.clone(), operation, Some(memory));
        file.device.hardware.submit(request.for_sync(for_sync));
    }

    /// A write begins: from here on it is in flight, for the device's figures and for the file.
    pub(super) fn begin_write(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        run: Run,
        for_sync: bool,
    ) -> (Operation, FrameMemory, WriteEnds<P>) {
        let Run { offset, len, memory, sequence, pages, continues } = run;
        let (device, now) = (&file.device, self.base.now());
        device.charges.writeback_begins(pages);
        let (kind, first, bytes, runs) =
            (TransferKind::Write, offset / PAGE_BYTES, u64::from(len), u64::from(!continues));
        let number = file.request_begins(Load { kind, first, pages, bytes, runs, for_sync }, now);
        let in_flight = device.requests().writes();
        let local = self.base.local();
        local.count(Counter::WriteRequests, 1);
        local.count(Counter::PageOut, bytes);
        let ends = WriteEnds { writeback: Arc::clone(self), file: Arc::clone(file), sequence, number, in_flight };
        let operation = Operation::Write { offset, len };
        self.base.trace_file(now, file, None, || EngineEvent::Submitted { operation });
        (operation, memory, ends)
    }

    /// Carries out an operation without data and waits for it. As many are in flight as the device has slots. A sync is
    /// made on this thread, if it may wait and the device can.
    pub(crate) async fn call(self: &Arc<Self>, file: &Arc<FileInner>, operation: Operation) -> Result<(), DeviceError> {
        let (base, device) = (&self.base, &file.device);
        device.requests().calls.take(1).await;
        let now = base.now();
        let number = file.request_begins(Load::CALL, now);
        base.trace_file(now, file, None, || EngineEvent::Submitted { operation });
        if operation == Operation::Sync
            && base.platform.may_wait_on_this_thread()
            && let Some(result) = device.hardware.sync_here(&file.backing)
        {
            self.end_call(file, operation, number, result);
            return result;
        }
        let answer = self.spare.call_answer();
        let (writeback, own, answering) = (Arc::clone(self), Arc::clone(file), Arc::clone(&answer));
        let ends = CallEnds { writeback, file: own, answer: answering, number };
        let sink = Boxed::of(&self.spare.calls, ends);
        device.hardware.submit(Request::new(sink, file.backing.clone(), operation, None));
        answer.wait().await
    }

    fn end_call(&self, file: &Arc<FileInner>, operation: Operation, number: u64, result: Result<(), DeviceError>) {
        if let (Operation::Sync, Err(error)) = (operation, result) {
            lock(&file.state).flushes.note_failure(error);
        }
        let EndedRequest { at, latency_ns: ns, .. } = file.request_ends(number, result.is_ok(), self.base.now());
        self.base.trace_file(at, file, None, || EngineEvent::Completed { operation, ns, error: result.err() });
        file.device.requests().calls.give_back(1);
    }

    /// Stops submission for a file, and waits until none of its requests is in flight.
    pub(crate) async fn hold(&self, file: &Arc<FileInner>) -> Hold<P> {
        lock(&file.state).hold();
        let hold = Hold { file: Arc::clone(file), platform: Arc::clone(&self.base.platform) };
        file.queue.until(|| (!lock(&file.state).flight.has_any()).then_some(())).await;
        hold
    }
}

/// A counted request without a slot yet: its waiter may go away.
struct CountedWrite<'a, P: Platform> {
    device: &'a DeviceState,
    writeback: &'a Writeback<P>,
}

impl<P: Platform> Drop for CountedWrite<'_, P> {
    fn drop(&mut self) {
        self.writeback.uncount_write(self.device);
    }
}

/// Until it is dropped nothing of the file is submitted.
pub(crate) struct Hold<P: Platform> {
    file: Arc<FileInner>,
    platform: Arc<P>,
}

impl<P: Platform> Drop for Hold<P> {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.file.state);
            state.release();
            self.file.requeue(&mut state, self.platform.now());
        }
        self.file.queue.wake_all();
    }
}

impl<P: Platform> Completion for Boxed<CallEnds<P>> {
    fn completed(mut self: Box<Self>, operation: Operation, _: Option<FrameMemory>, result: Result<(), DeviceError>) {
        let CallEnds { writeback, file, answer, number } = self.take();
        writeback.end_call(&file, operation, number, result);
        writeback.spare.calls.try_keep(self);
        answer.give(result);
    }
}
