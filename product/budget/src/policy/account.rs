//! What the policy remembers of a payer.
//!
//! Owns: since when it was last decided about, the pause that it is in. Does not own: its debt (`payer`).
//! Invariants: time that it slept for its debt is not idle time.

use afflux_engine::policy::Admission;

use super::Standing;
use super::portions::Share;
use crate::Payer;

/// What is remembered of a payer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayerMemory {
    pub(super) payer: Payer,
    /// When it was last decided about.
    decided_ns: Option<u64>,
    pausing: Option<Pausing>,
    pub(super) share: Share,
}

/// A pause, of the wait that its debt was worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pausing {
    pub(super) ns: u64,
    pub(super) of_ns: u64,
}

impl PayerMemory {
    /// Brings what the payer owes up to this moment, with the device divided among so many.
    pub(super) fn settle(&mut self, now_ns: u64, standing: &Standing, payers: u64, generation: u64) {
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

    /// Whether it has not used its share for a while: crumbs of credit are left by any pause.
    pub(super) fn is_light(&self, standing: &Standing) -> bool {
        let most = standing.band.credit_ns_max(standing.payers) as i64;
        self.payer.debt_ns() < -(most / 2)
    }

    /// It waits in the queue until it is let in.
    pub(super) fn queues(&mut self) -> Admission {
        self.share.queues();
        Admission::Wait
    }

    pub(super) fn pauses(&mut self, pausing: Pausing) {
        self.pausing = Some(pausing);
    }
}
