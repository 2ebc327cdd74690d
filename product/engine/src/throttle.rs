//! Throttling: the policy in force admits writers or makes them wait, as `balance_dirty_pages` does in Linux.
//!
//! Before a writer dirties pages, they are charged by the device's admission queue. A policy that admits payers
//! (`Needs::admits`) admits them itself, if the payer has used up its allowance or its device's limit is reached.
//! After, the dirtied pages go on the payer's account. A policy that paces payers (`Needs::paces`) is asked then, and
//! may make the writer pause.
//!
//! Owns: when a payer is decided about, which account pays, the execution of the decisions, the cause of a pause.
//! Does not own: the decisions (policies), the accounts (`devices::payer`), charges and the queue (`dirty`), the record
//! of a pause (`call`, `devices::waits`).
//! Invariants: no lock is held while a writer waits. Writers to a device that keeps failing get the error instead of
//! waiting. If the device hangs, that is the cause of its writers' pauses. A writer in the device's line leaves it for
//! another file's failure only to be refused (`a_file_whose_syncs_fail_moves_and_wakes_no_writer_of_another`).

use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use afflux_device::client::Client;
use afflux_device::counters::Counter;
use afflux_device::error::{DeviceError, Error};
use afflux_device::platform::Platform;
use afflux_device::policy::{Admission, Dirtier, Pause, PauseCause, PayerCounts};
use afflux_pages::units::PageCount;

use crate::base::Base;
use crate::call::{CallWait, FileCall};
use crate::devices::file::FileInner;
use crate::devices::payer::{Dirtied, MachineSize, Payer};
use crate::devices::waits::{PayerId, WaitsFor};
use crate::dirty::{self, Charge, refresh_guard, try_enter, try_take_anew};

/// The payer for a write call: an open file, for a client if one is known.
pub(crate) struct PayingCall<'a> {
    pub(crate) file: &'a Arc<FileInner>,
    /// The waits of the call.
    pub(crate) call: FileCall<'a>,
    /// The client's account, while the file is new.
    client_payer: Option<Arc<Payer>>,
}

impl<'a> PayingCall<'a> {
    /// `by_client`: the client pays for writes to a new file.
    pub(crate) fn new(file: &'a Arc<FileInner>, client: Option<&'a Client>, by_client: bool) -> Self {
        let new = client.filter(|_| by_client && file.payer.is_new());
        let client_payer = new.and_then(Client::payer).map(|client| file.device.client_payers.of(&client));
        Self { file, call: FileCall::new(file, client), client_payer }
    }

    /// The account for its dirtied pages.
    fn account(&self) -> &Payer {
        self.client_payer.as_deref().unwrap_or(&self.file.payer)
    }

    /// It has dirtied `pages` pages.
    fn dirtied(&self, pages: u64) {
        if self.client_payer.is_some() {
            self.file.payer.note_client_dirtied(pages);
        }
    }

    /// The number of clients with waiting payers, and of its own client's waiting payers, both including this one.
    fn sharing(&self) -> (u64, u64) {
        self.file.device.waits.sharing(self.call.client, self.id())
    }

    fn id(&self) -> PayerId {
        std::ptr::from_ref(self.account()).addr()
    }

    /// A pause begins, which is to last `asked_ns` at most.
    pub(crate) fn pauses<P: Platform>(
        &'a self,
        base: &'a Base<P>,
        cause: PauseCause,
        asked_ns: u64,
    ) -> CallWait<'a, P> {
        let cause = if self.file.device.hang().is_stalled() { PauseCause::Hung } else { cause };
        self.call.begins(base, WaitsFor::Pause(cause), Some(self.id()), asked_ns)
    }
}

/// The most pages written between two questions to the policy, regardless of its allowance.
const PIECE_PAGES_MAX: u64 = 64;

/// Pages that a payer with a smaller allowance dirties before a decision: one for each page would cost more than the
/// pages.
const ASKED_PAGES: u64 = 16;

/// The part of an equal part that is charged at a time, at most.
const PIECE_PART: u64 = 4;

/// The next step after a decision.
enum NextStep {
    /// The payer goes on.
    GoesOn,
    /// The payer waits in the queue.
    Queues,
    /// The payer is decided about again.
    AskAgain,
}

/// Why a writer is no longer in its device's line.
enum Passed {
    /// Its pages are charged.
    Enters,
    /// It waits for its file first, or is refused for it.
    ForItsFile,
    /// It would wait for releases that may never come.
    Refused(DeviceError),
}

pub(crate) struct Throttle<P: Platform> {
    base: Base<P>,
}

impl<P: Platform> Throttle<P> {
    pub(crate) fn new(base: Base<P>) -> Self {
        Self { base }
    }

    fn machine_size(&self) -> MachineSize {
        MachineSize { memory_pages: self.base.devices.memory_pages(), cpus: self.base.platform.counters().threads() }
    }

    /// Pages to charge and write at a time, at least 1. Fewer if the limit is small, or if the payer's allowance is
    /// nearly used up, so that it is not overrun. One if failed pages use most of the limit.
    pub(crate) fn piece_pages(&self, payer: &PayingCall<'_>) -> u64 {
        let (file, account) = (payer.file, payer.account());
        let (policy, part) = (&self.base.devices.policy, self.base.devices.totals.part_pages() / PIECE_PART);
        if dirty::is_half_failed(&self.base.devices, &file.device) {
            return 1;
        }
        if let Some(pages) = dirty::trial_piece_pages(&self.base.devices, file, || self.base.moment()) {
            return pages.clamp(1, PIECE_PAGES_MAX);
        }
        let needs = policy.needs();
        let pages = if needs.admits {
            let unasked = file.device.admission().unasked_pages().0;
            let asked = || account.allowance_pages(policy, self.machine_size()).max(ASKED_PAGES);
            part.min(if unasked >= PIECE_PAGES_MAX { unasked } else { asked() })
        } else if needs.paces {
            part.min(self.paced_pages(payer, 0))
        } else {
            part
        };
        pages.clamp(1, PIECE_PAGES_MAX)
    }

    /// The payer for a call's writes.
    pub(crate) fn paying<'a>(&self, file: &'a Arc<FileInner>, client: Option<&'a Client>) -> PayingCall<'a> {
        PayingCall::new(file, client, self.base.devices.policy.needs().admits)
    }

    /// Charges pages of the file that the writer is about to dirty.
    ///
    /// # Errors
    /// If it would have to wait for a device, or a file, that keeps failing.
    pub(crate) async fn charge(&self, payer: &PayingCall<'_>, wanted: Range<u64>) -> Result<Charge, Error> {
        let (file, pages) = (payer.file, wanted.end - wanted.start);
        if self.base.devices.policy.needs().admits {
            self.admit(payer, pages).await?;
            if payer.account().has_no_waiters() && file.device.admission().try_take_unasked(PageCount(pages)) {
                return Ok(Charge::unasked(&file.device, pages));
            }
            let enters = payer.account().has_no_waiters() && self.try_enter_within_allowance(payer, pages);
            return if enters {
                Ok(Charge::granted(&file.device, pages))
            } else {
                self.charge_by_policy(payer, wanted).await
            };
        }
        self.queue(payer, pages).await
    }

    /// Asks for one call of the payer after the other, and a call that has to queue does so before the next is asked
    /// for. If each call were asked for separately, a new one would enter as soon as one that has waited for long, and
    /// some would wait for ever. If each queued separately, a payer with many calls would have as many slots in the
    /// queue, and could not use what it is given when it is served: its other calls would be far behind.
    async fn charge_by_policy(&self, payer: &PayingCall<'_>, wanted: Range<u64>) -> Result<Charge, Error> {
        let (file, pages) = (payer.file, wanted.end - wanted.start);
        let _question = match payer.account().try_question() {
            Some(question) => question,
            None => {
                let cause = file.device.admission().cause(PageCount(pages));
                let _noted = payer.pauses(&self.base, cause, u64::MAX);
                payer.account().next_question().await
            }
        };
        let enters = self.try_enter_within_allowance(payer, pages)
            || match self.ask(payer, wanted).await? {
                NextStep::Queues => false,
                NextStep::GoesOn | NextStep::AskAgain => try_enter(&self.base.devices, &file.device, PageCount(pages)),
            };
        if enters { Ok(Charge::granted(&file.device, pages)) } else { self.queue(payer, pages).await }
    }

    /// Charges pages of a payer with allowance left, if they fit in its device's limit and nobody waits.
    fn try_enter_within_allowance(&self, payer: &PayingCall<'_>, pages: u64) -> bool {
        let (file, devices, machine) = (payer.file, &self.base.devices, self.machine_size());
        !payer.account().has_used_up(&devices.policy, machine)
            && (file.device.admission().try_take(PageCount(pages))
                || try_take_anew(devices, &file.device, PageCount(pages)))
    }

    /// The writer has dirtied more pages, which go on its payer's account.
    ///
    /// # Errors
    /// As [`Throttle::charge`].
    pub(crate) async fn balance(&self, payer: &PayingCall<'_>, dirtied: &Dirtied) -> Result<(), Error> {
        let policy = &self.base.devices.policy;
        let needs = policy.needs();
        if dirtied.pages == 0 {
            return Ok(());
        }
        if needs.admits {
            payer.account().owes(policy, self.machine_size(), dirtied);
            payer.dirtied(dirtied.pages);
        } else if needs.paces && self.paced_pages(payer, dirtied.pages) == 0 {
            self.ask(payer, 0..0).await?;
        }
        Ok(())
    }

    /// How many more pages the payer may dirty under a policy that paces, once it has dirtied `pages`.
    fn paced_pages(&self, payer: &PayingCall<'_>, pages: u64) -> u64 {
        let machine = self.machine_size();
        let MachineSize { memory_pages, cpus } = machine;
        let dirtier = Dirtier { pages, cpu: self.base.local().number(), cpus, memory_pages };
        payer.account().paced_pages(&self.base.devices.policy, machine, &payer.file.device.memory, &dirtier)
    }

    /// Waits while the file has too much that cannot be written, or a write that does not end.
    async fn admit(&self, payer: &PayingCall<'_>, pages: u64) -> Result<(), Error> {
        let waits = || payer.pauses(&self.base, PauseCause::File, u64::MAX);
        Ok(dirty::admit(&self.base.devices, payer.file, pages, || self.base.moment(), waits).await?)
    }

    /// Waits until pages fit in the device's admission queue.
    async fn queue(&self, payer: &PayingCall<'_>, pages: u64) -> Result<Charge, Error> {
        let file = payer.file;
        let (devices, device) = (&self.base.devices, &file.device);
        loop {
            self.admit(payer, pages).await?;
            if device.admission().try_take(PageCount(pages)) || try_take_anew(devices, device, PageCount(pages)) {
                break;
            }
            match self.pass_line(file, pages) {
                Some(Passed::Enters) => break,
                Some(Passed::Refused(error)) => return Err(error.into()),
                Some(Passed::ForItsFile) => continue,
                None => {}
            }
            match self.stand_in_line(payer, pages).await {
                Passed::Enters => break,
                Passed::Refused(error) => return Err(error.into()),
                Passed::ForItsFile => {}
            }
        }
        Ok(Charge::granted(device, pages))
    }

    /// Waits in the device's line, and leaves it for another reason than admission if there is one.
    async fn stand_in_line(&self, payer: &PayingCall<'_>, pages: u64) -> Passed {
        let file = payer.file;
        let (devices, device) = (&self.base.devices, &file.device);
        let (cause, mut hangs) = (device.admission().cause(PageCount(pages)), device.hang().is_stalled());
        let mut noted = Some(payer.pauses(&self.base, cause, u64::MAX));
        let waits = devices.totals.waits();
        let mut take = pin!(device.admission().take(PageCount(pages), file.pages.slot));
        poll_fn(|cx| {
            if take.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Passed::Enters);
            }
            // Only once it is in the queue: the flusher checks for waiters.
            device.flusher().raise();
            // Only now, because earlier releases by other devices woke nobody.
            waits.fence_queued();
            refresh_guard(devices, device);
            // Whoever changes the answer wakes this writer.
            if let Some(passed) = self.pass_line(file, pages) {
                return Poll::Ready(passed);
            }
            if device.hang().is_stalled() && !std::mem::replace(&mut hangs, true) {
                // From here on it waits for the hung device.
                drop(noted.take());
                noted = Some(payer.pauses(&self.base, cause, u64::MAX));
            }
            take.wait_on();
            Poll::Pending
        })
        .await
    }

    /// Why the writer does not wait in the device's line, if it does not.
    fn pass_line(&self, file: &FileInner, pages: u64) -> Option<Passed> {
        if !dirty::may_admit(&self.base.devices, file, pages, || self.base.moment()) {
            return Some(Passed::ForItsFile);
        }
        if dirty::may_try(file) && file.device.admission().try_enter_alone(PageCount(pages)) {
            return Some(Passed::Enters);
        }
        dirty::refusal(file).map(Passed::Refused)
    }

    /// Asks about the payer, which wants to dirty these pages, until it may go on or has to queue.
    async fn ask(&self, payer: &PayingCall<'_>, wanted: Range<u64>) -> Result<NextStep, Error> {
        let file = payer.file;
        self.base.local().count(Counter::BalanceCalls, 1);
        let (wanted, wanted_at) = (wanted.end - wanted.start, wanted.start);
        let mut so_far = PayerCounts { wanted, wanted_at, ..PayerCounts::default() };
        loop {
            (so_far.clients, so_far.client_payers) = payer.sharing();
            let admission = self.ask_about(payer, &so_far);
            if admission == Admission::Enter {
                return Ok(NextStep::GoesOn);
            }
            if let Some(error) = dirty::refusal(file) {
                return Err(error.into());
            }
            match self.carry_out(payer, admission).await {
                NextStep::AskAgain => {}
                follows => return Ok(follows),
            }
        }
    }

    async fn carry_out(&self, payer: &PayingCall<'_>, admission: Admission) -> NextStep {
        match admission {
            Admission::Enter => NextStep::GoesOn,
            Admission::Wait => NextStep::Queues,
            Admission::Pause(pause) => {
                self.pause(payer, pause).await;
                NextStep::AskAgain
            }
            Admission::EnterAfter(pause) => {
                self.pause(payer, pause).await;
                NextStep::GoesOn
            }
        }
    }

    async fn pause(&self, payer: &PayingCall<'_>, pause: Pause) {
        let policy = &self.base.devices.policy;
        let (name, max) = (policy.name(), policy.pause_ns_max());
        assert!(pause.ns <= max, "{name} asks for a pause of {} ns, and its longest is of {max}", pause.ns);
        let noted = payer.pauses(&self.base, pause.cause, pause.ns);
        self.base.sleep_until(noted.began.after(pause.ns)).await;
    }

    /// Takes a snapshot and has the policy decide. Not inlined: a test counts its instructions.
    #[inline(never)]
    fn ask_about(&self, payer: &PayingCall<'_>, so_far: &PayerCounts) -> Admission {
        let (device, policy) = (&payer.file.device, &self.base.devices.policy);
        let mut view = self.base.devices.view_to_ask(device, self.base.moment());
        let memory = &device.memory;
        let (admission, wakes_flusher) = payer.account().ask(policy, self.machine_size(), memory, &mut view, so_far);
        self.base.local().count(Counter::BalancePasses, 1);
        if wakes_flusher {
            device.flusher().raise();
        }
        admission
    }
}
