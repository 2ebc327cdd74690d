//! The policy's memory of a payer.
//!
//! Owns: the time of the last decision, the pause in force. Does not own: the debt (`payer`).
//! Invariants: time that a payer slept for its debt is not idle time.

use afflux_device::policy::{Admission, Pace, View};

use super::device_view::DeviceView;
use super::portions::{PayerPortion, PortionRequest, Portions};
use crate::PayerDebt;

/// Pages of a portion after which its payer is looked at.
pub(super) const PORTION_PIECE_PAGES: u64 = 256;

/// The memory of a payer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayerMemory {
    pub(super) payer: PayerDebt,
    /// Time of the last decision.
    decided_ns: Option<u64>,
    pausing: Option<Pausing>,
    pub(super) portion: PayerPortion,
}

/// A pause, of the wait that its debt was worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pausing {
    pub(super) ns: u64,
    pub(super) of_ns: u64,
}

impl PayerMemory {
    /// Brings the payer's debt up to this moment, with the device divided among `payers`.
    pub(super) fn settle(&mut self, now_ns: u64, standing: &DeviceView, payers: u64, generation: u64) {
        let since = now_ns.saturating_sub(self.decided_ns.unwrap_or(now_ns));
        let mut slept = 0;
        if let Some(Pausing { ns, of_ns }) = self.pausing.take() {
            slept = since.min(ns);
            self.payer.slept(slept, of_ns);
        }
        self.payer.repriced(generation);
        if since > slept {
            let entry = standing.band.entry(standing.backlog_ns);
            self.payer.idled(since - slept, standing.band, entry, payers);
        }
        self.decided_ns = Some(now_ns);
    }

    /// Whether the payer has not used its part for a while: any pause leaves crumbs of credit.
    pub(super) fn is_light(&self, standing: &DeviceView) -> bool {
        let most = standing.band.credit_ns_max(standing.payers) as i64;
        self.payer.debt_ns() < -(most / 2)
    }

    /// A payer that may go on takes a portion, if there are portions and it does not write little. A payer for whose
    /// portion the limit is reached queues.
    pub(super) fn take_portion(
        &mut self,
        view: &View,
        standing: &DeviceView,
        portions: &mut Portions,
        is_admitted: bool,
        pace: &mut Pace,
    ) -> Admission {
        let Some(bytes) = standing.portion_bytes.filter(|_| !self.is_light(standing)) else { return Admission::Enter };
        let request = PortionRequest {
            band: standing.band,
            backlog_ns: standing.backlog_ns,
            prices: &standing.rates.prices,
            bytes,
            page: view.payer.wanted_at,
            is_admitted,
        };
        match self.portion.takes(portions, view.now.0, &request) {
            Some(pages) => {
                pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
                Admission::Enter
            }
            None => self.queues(),
        }
    }

    /// The payer waits in the queue until it is admitted.
    pub(super) fn queues(&mut self) -> Admission {
        self.portion.queues();
        Admission::Wait
    }

    pub(super) fn pauses(&mut self, pausing: Pausing) {
        self.pausing = Some(pausing);
    }
}
