//! The log: which batches share a PUT.
//!
//! Owns: the callers and readers that wait, the moment of each log PUT.
//! Does not own: the PUT itself, the path of batches into the database (`tasks`).
//! Invariants: one log PUT runs at a time. It begins with all batches that callers waited for. It waits for more
//! callers for half of the last PUT's time at most. A batch that nobody waits for begins no PUT for a second.

use std::collections::BTreeMap;
use std::time::Duration;

use afflux_object::{RecordsError, Sequence};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{Instant, timeout, timeout_at};

/// A batch that no caller waits for, such as a time of a file, goes to the log with the next one, or after this time.
const UNWANTED_FOR: Duration = Duration::from_secs(1);
/// A log PUT waits this part of the last one's time for as many callers as there were.
const GATHERED_PART: u32 = 2;
/// The PUT goes without them once no caller came for this part.
const LULL_PART: u32 = 4;
/// A PUT that took longer, as in an outage, predicts nothing about the next one.
const LONGEST: Duration = Duration::from_millis(200);
/// The runtime's timers are no finer: on a store that is quicker than this, a wait would cost more than it saves.
const SHORTEST: Duration = Duration::from_millis(4);

/// The batches in the database, and the callers that wait for durable ones.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The newest batch in the database.
    pub(super) written: Sequence,
    /// A time before that batch was given to the database.
    pub(super) written_ns: u64,
    /// The newest durable batch.
    durable: Sequence,
    /// The newest batch that a caller waited for.
    wanted: Sequence,
    /// The newest batch that a reader waits for.
    read: Sequence,
    /// How many callers wait for each batch that is not durable.
    callers: BTreeMap<Sequence, u64>,
    pub(super) is_ended: bool,
}

impl Demand {
    /// Whether somebody waits for a batch, or for a later one.
    pub(super) fn is_needed(&self, sequence: Sequence) -> bool {
        self.is_ended || self.wanted.max(self.read) >= sequence
    }

    /// A reader waits for a batch.
    pub(super) fn reads(&mut self, sequence: Sequence) {
        self.read = self.read.max(sequence);
    }

    fn callers(&self) -> u64 {
        self.callers.values().sum()
    }

    /// Batches became durable. Returns how many callers that answers.
    fn answer(&mut self, upto: Sequence) -> u64 {
        self.durable = upto;
        let rest = self.callers.split_off(&Sequence(upto.0 + 1));
        std::mem::replace(&mut self.callers, rest).values().sum()
    }
}

/// A caller that waits for a batch. It counts until the batch is durable or the value is dropped.
pub(super) struct BatchCaller<'a> {
    demand: &'a Sender<Demand>,
    sequence: Sequence,
}

impl<'a> BatchCaller<'a> {
    pub(super) fn waits(demand: &'a Sender<Demand>, sequence: Sequence) -> Self {
        demand.send_if_modified(|demand| {
            let is_needed = sequence > demand.durable;
            if is_needed {
                demand.wanted = demand.wanted.max(sequence);
                *demand.callers.entry(sequence).or_default() += 1;
            }
            is_needed
        });
        Self { demand, sequence }
    }
}

impl Drop for BatchCaller<'_> {
    fn drop(&mut self) {
        self.demand.send_if_modified(|demand| {
            if let Some(callers) = demand.callers.get_mut(&self.sequence) {
                *callers -= 1;
                if *callers == 0 {
                    demand.callers.remove(&self.sequence);
                }
            }
            false
        });
    }
}

/// The callers that the next PUT waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Gathering {
    /// The number of callers that the last PUT answered, with the later ones.
    expected: u64,
    /// The time of the last PUT.
    took: Duration,
}

impl Gathering {
    /// Waits until as many callers are there as before. Otherwise clients alternate, and wait for two PUTs each.
    async fn wait(self, seen: &mut Receiver<Demand>) {
        if self.took < SHORTEST {
            return;
        }
        let end = Instant::now() + self.took / GATHERED_PART;
        loop {
            let callers = seen.borrow_and_update().callers();
            if callers >= self.expected {
                return;
            }
            let lull = end.min(Instant::now() + self.took / LULL_PART);
            let more = seen.wait_for(|demand| demand.is_ended || demand.callers() > callers);
            if !matches!(timeout_at(lull, more).await, Ok(Ok(demand)) if !demand.is_ended) {
                return;
            }
        }
    }
}

/// Makes batches durable with `put`, until the end. `durable` is called after each PUT with the newest batch in it, and
/// with a time before that batch was given to the database.
///
/// # Errors
/// The first error of a PUT.
pub(super) async fn log<P: Future<Output = Result<(), RecordsError>>>(
    demand: &Sender<Demand>,
    put: impl Fn() -> P,
    durable: impl Fn(Sequence, u64),
) -> Result<(), RecordsError> {
    let (mut seen, mut gathering) = (demand.subscribe(), Gathering::default());
    loop {
        let has_batch = |demand: &Demand| demand.is_ended || demand.written > demand.durable;
        // The sender lives as long as this loop, so a wait fails only by time.
        let _ = seen.wait_for(has_batch).await.map(drop);
        let is_wanted = |demand: &Demand| demand.is_ended || demand.wanted > demand.durable;
        if timeout(UNWANTED_FOR, seen.wait_for(is_wanted)).await.is_ok() {
            gathering.wait(&mut seen).await;
            let wanted = seen.borrow_and_update().wanted;
            // The database takes it at once. A PUT without it would make its caller wait for another.
            let _ = seen.wait_for(|demand| demand.is_ended || demand.written >= wanted).await.map(drop);
        }
        let (upto, before_ns) = {
            let demand = seen.borrow_and_update();
            if demand.is_ended {
                return Ok(());
            }
            (demand.written, demand.written_ns)
        };
        let sent = Instant::now();
        put().await?;
        let mut answered = 0;
        demand.send_modify(|demand| answered = demand.answer(upto));
        let expected = answered + seen.borrow_and_update().callers();
        gathering = Gathering { expected, took: sent.elapsed().min(LONGEST) };
        durable(upto, before_ns);
    }
}

#[cfg(test)]
mod tests;
