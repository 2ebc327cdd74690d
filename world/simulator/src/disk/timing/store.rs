//! An object store: high latency, wide parallelism.
//!
//! Each request is a call of its own. It takes the latency of its direction, more or less by up to `spread` (drawn
//! uniformly), and ten times that in `tail_per_mille` of 1,000 cases. Then its bytes pass at the rate of one
//! connection. All connections together share the link. There is no position, no seek and no cache: acknowledged writes
//! are durable.
//!
//! Owns: the link's time.
//! Does not own: the number of parallel calls (`mechanism`).
//! Invariants: the link is never ahead of its rate.

use super::elevator::Command;
use super::finishing::Finishing;
use super::times::transfer_ns;
use crate::random::Random;

/// Factor by which a call of the tail takes longer.
const TAIL_FACTOR: u64 = 10;

#[derive(Clone, Debug)]
pub(crate) struct StoreParameters {
    pub(crate) read_latency_ns: u64,
    pub(crate) write_latency_ns: u64,
    /// Largest deviation of a call's latency, in thousandths of the latency.
    pub(crate) spread_per_mille: u64,
    pub(crate) tail_per_mille: u64,
    pub(crate) connection_bytes_per_second: u64,
    pub(crate) link_bytes_per_second: u64,
}

pub(super) struct Store {
    parameters: StoreParameters,
    link_free_ns: u64,
    pub(super) finishing: Finishing,
}

impl Store {
    pub(super) fn new(parameters: StoreParameters) -> Self {
        Self { parameters, link_free_ns: 0, finishing: Finishing::default() }
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command, random: &mut Random) {
        let parameters = &self.parameters;
        let base_ns = if command.write { parameters.write_latency_ns } else { parameters.read_latency_ns };
        let spread_ns = base_ns / 1000 * parameters.spread_per_mille.min(1000);
        let mut latency_ns = random.between(base_ns - spread_ns, base_ns + spread_ns);
        if random.chance(parameters.tail_per_mille) {
            latency_ns *= TAIL_FACTOR;
        }
        let bytes = command.span.len;
        let linked_ns =
            now_ns.max(self.link_free_ns).saturating_add(transfer_ns(bytes, parameters.link_bytes_per_second));
        self.link_free_ns = linked_ns;
        let alone_ns = now_ns + latency_ns + transfer_ns(bytes, parameters.connection_bytes_per_second);
        self.finishing.add(alone_ns.max(linked_ns + latency_ns), command.token);
    }
}
