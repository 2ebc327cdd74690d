//! Writers under a kernel's law: asked about after they dirtied pages, and paused.
//!
//! Owns: when such a question is due, the execution of the answers. A question is due when the writer, or all writers
//! of its CPU together, have used up their allowance.
//! Does not own: the admission queue, which charged the pages before; the loop of questions (`throttle`).
//! Invariants: no lock is held while the writer waits.

use super::decision::{AfterPause, EXCEEDED_PAGES, WriterPace, WriterPause};
use crate::counters::Counter;
use crate::devices::DeviceState;
use crate::devices::file::FileInner;
use crate::error::Error;
use crate::platform::Platform;
use crate::policy::{Account, Dirtied, View};
use crate::throttle::{NextStep, PayingCall, Throttle};
use crate::trace::Event;

impl<P: Platform> Throttle<P> {
    /// How many pages the payer may dirty before a question is due.
    pub(crate) fn allowance_after(&self, payer: &PayingCall<'_>) -> u64 {
        let exceeded = payer.file.device.is_dirty_exceeded();
        self.with_account(payer.file, |account, of_cpu| {
            let left = allowance(account, exceeded).saturating_sub(account.unpaid_pages);
            left.min(cpu_allowance(account, of_cpu, exceeded))
        })
    }

    /// The writer has dirtied more pages. Asks the law if a question is due, and executes the decision.
    ///
    /// # Errors
    /// As [`Throttle::charge`].
    pub(crate) async fn balance_after(&self, payer: &PayingCall<'_>, dirtied: &Dirtied) -> Result<(), Error> {
        if dirtied.pages > 0 && self.is_due(payer.file, dirtied.pages) {
            self.ask(payer, 0..0).await?;
        }
        Ok(())
    }

    /// Adds to the payer's account; returns whether to ask the law now. A CPU's account is settled whenever any payer's
    /// is.
    fn is_due(&self, file: &FileInner, pages: u64) -> bool {
        let local = self.base.local();
        let dirtied_on_cpu = local.cpu_account.owe(pages);
        let exceeded = file.device.is_dirty_exceeded();
        let due = self.with_account(file, |account, of_cpu| {
            account.unpaid_pages = account.unpaid_pages.saturating_add(pages);
            account.unpaid_pages >= allowance(account, exceeded)
                || dirtied_on_cpu >= cpu_allowance(account, of_cpu, exceeded)
        });
        if due {
            local.cpu_account.pay();
        }
        due
    }

    /// The file's account, and the allowance of a CPU.
    fn with_account<T>(&self, file: &FileInner, look: impl FnOnce(&mut Account, u64) -> T) -> T {
        let (policy, state, machine) = (&self.base.devices.policy, &self.base.devices.old_kernel, self.machine_size());
        file.payer.with(policy, machine, |account| {
            if state.cpu_pages() == 0 {
                state.set_cpu_pages(policy.start(machine.memory_pages, machine.cpus).old_kernel.cpu_pages);
            }
            look(account, state.cpu_pages())
        })
    }

    /// The pace in force before a decision.
    pub(crate) fn pace_before(&self, device: &DeviceState) -> WriterPace {
        let cpu_pages = self.base.devices.old_kernel.cpu_pages();
        WriterPace { cpu_pages, dirty_exceeded: device.is_dirty_exceeded(), start_background: false }
    }

    /// Obeys the pace of a decision that the law made from this view.
    pub(crate) fn obey(&self, device: &DeviceState, pace: WriterPace, view: &View) {
        self.base.devices.old_kernel.set_cpu_pages(pace.cpu_pages);
        if device.set_dirty_exceeded(pace.dirty_exceeded) {
            self.base.trace_device(Some(device.id()), || Event::DeviceOver { over: pace.dirty_exceeded });
        }
        let (reads, local) = (view.reads(), self.base.local());
        local.count(Counter::BalanceGlobalReads, reads.global);
        local.count(Counter::BalanceDirtyReads, reads.dirty);
        local.count(Counter::BalanceDeviceReads, reads.device);
        if pace.start_background {
            device.flusher().raise();
        }
    }

    /// Carries out a pause that only a kernel's law decides.
    pub(crate) async fn pause_after(&self, payer: &PayingCall<'_>, pause: WriterPause) -> NextStep {
        self.assert_pause(pause.ns);
        let noted = payer.pauses(&self.base, pause.cause, pause.ns);
        self.base.sleep_until(noted.began.after(pause.ns)).await;
        if pause.then == AfterPause::Return { NextStep::GoesOn } else { NextStep::AskAgain }
    }
}

fn allowance(account: &Account, exceeded: bool) -> u64 {
    if exceeded { account.payer_pages.min(EXCEEDED_PAGES) } else { account.payer_pages }
}

/// Pages that all payers of a CPU may dirty. If that is the only account, it also reflects devices over their limit.
fn cpu_allowance(account: &Account, of_cpu: u64, exceeded: bool) -> u64 {
    let alone = account.payer_pages == u64::MAX;
    if alone { of_cpu.min(allowance(account, exceeded)) } else { of_cpu }
}
