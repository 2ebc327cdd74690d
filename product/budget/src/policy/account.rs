//! The policy's memory of a payer.
//!
//! Owns: the time of the last decision, the pause in force. Does not own: the debt (`payer`).
//! Invariants: time that a payer slept for its debt is not idle time.

use afflux_device::policy::Admission;

use super::DeviceView;
use super::portions::PayerShare;
use crate::PayerDebt;

/// The memory of a payer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayerMemory {
    pub(super) payer: PayerDebt,
    /// Time of the last decision.
    decided_ns: Option<u64>,
    pausing: Option<Pausing>,
    pub(super) share: PayerShare,
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

    /// Whether the payer has not used its share for a while: any pause leaves crumbs of credit.
    pub(super) fn is_light(&self, standing: &DeviceView) -> bool {
        let most = standing.band.credit_ns_max(standing.payers) as i64;
        self.payer.debt_ns() < -(most / 2)
    }

    /// The payer waits in the queue until it is admitted.
    pub(super) fn queues(&mut self) -> Admission {
        self.share.queues();
        Admission::Wait
    }

    pub(super) fn pauses(&mut self, pausing: Pausing) {
        self.pausing = Some(pausing);
    }
}
