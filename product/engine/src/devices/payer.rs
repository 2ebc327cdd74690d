//! A payer's account: its dirtied pages that no decision covers yet.
//!
//! An open file is a payer with an allowance. A client that makes a new file for each write would have a new allowance
//! for each, and never pay. So the client pays for the first bytes of a file, with one account a device.
//!
//! Owns: the account of an open file, those of clients, how many of these are remembered. Also when a question about an
//! account is due, which call that concerns, and when a file ceases to be new.
//! Does not own: the question; the account in the memory of a policy that paces.
//! Invariants: an account is opened at its first use, so files without writers have none; it is locked before the
//! policy's memories. Of the clients that write no new files now, only the last [`CLIENTS_MAX`] are remembered; their
//! lock is a leaf.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use afflux_device::client::Client;
use afflux_device::policy::{Admission, Dirtier, Pace, PayerCounts, PolicyMemory, View};
use afflux_pages::wait::{Permits, lock};

use crate::devices::active_policy::{ActivePolicy, LockedMemory};

/// Pages after which a file is no longer new. Small files stay below it. It is a part of a larger file's last piece,
/// about which no question is asked any more.
const NEW_PAGES: u64 = 256;

/// The state of a payer: an open file is one.
#[derive(Default)]
pub(crate) struct Payer {
    account: Mutex<Option<Account>>,
    /// Pages dirtied while the file was new.
    new_pages: AtomicU64,
    /// Held by the call that a question concerns. Made at the first question: most payers never have one.
    question: OnceLock<Box<Permits>>,
}

/// The right of one call to ask the policy about its payer.
pub(crate) struct Question<'a>(&'a Permits);

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}

/// Pages and runs that a writer dirtied.
#[derive(Clone, Copy, Default)]
pub(crate) struct Dirtied {
    /// Pages that were clean before.
    pub pages: u64,
    /// Runs of dirty pages that the writer began.
    pub runs: u64,
    /// Whether no decision was due: little was charged.
    pub unasked: bool,
}

impl Dirtied {
    fn add(&mut self, more: &Self) {
        self.pages = self.pages.saturating_add(more.pages);
        self.runs = self.runs.saturating_add(more.runs);
    }
}

/// The machine's properties that a first allowance depends on.
#[derive(Clone, Copy)]
pub(crate) struct MachineSize {
    /// Pages of the cache.
    pub memory_pages: u64,
    /// Threads, or virtual CPUs.
    pub cpus: u64,
}

struct Account {
    unpaid_pages: u64,
    unpaid_runs: u64,
    /// Pages that the payer may dirty before the next decision.
    payer_pages: u64,
    payer_runs: u64,
    /// Dirtied since the last decision while so little was charged that no decision was due.
    unasked: Dirtied,
    memory: PolicyMemory,
}

impl Account {
    fn new(in_force: &ActivePolicy, machine: MachineSize) -> Self {
        let start = in_force.start(machine.memory_pages, machine.cpus);
        Self {
            unpaid_pages: 0,
            unpaid_runs: 0,
            payer_pages: start.payer_pages,
            payer_runs: start.payer_runs,
            unasked: Dirtied::default(),
            memory: in_force.new_payer(),
        }
    }
}

impl Payer {
    fn question(&self) -> &Permits {
        self.question.get_or_init(|| Box::new(Permits::new(1)))
    }

    /// Whether no call of the payer waits for its question.
    pub(crate) fn has_no_waiters(&self) -> bool {
        !self.question.get().is_some_and(|question| question.are_waited_for())
    }

    /// The question, unless it concerns another call.
    pub(crate) fn try_question(&self) -> Option<Question<'_>> {
        let question = self.question();
        // Not made before the take: dropping a question that was not taken would give back another call's.
        question.try_take(1).then(|| Question(question))
    }

    /// Waits until the question is this call's, in order of asking.
    pub(crate) async fn next_question(&self) -> Question<'_> {
        let question = self.question();
        question.take(1).await;
        Question(question)
    }

    /// The account, opened if there is none.
    fn with<T>(&self, in_force: &ActivePolicy, machine: MachineSize, look: impl FnOnce(&mut Account) -> T) -> T {
        look(lock(&self.account).get_or_insert_with(|| Account::new(in_force, machine)))
    }

    /// Whether its client, if any, still pays for the pages that the file dirties.
    pub(crate) fn is_new(&self) -> bool {
        self.new_pages.load(Ordering::Relaxed) < NEW_PAGES
    }

    /// The file has dirtied pages that its client pays for.
    pub(crate) fn note_client_dirtied(&self, pages: u64) {
        self.new_pages.fetch_add(pages, Ordering::Relaxed);
    }

    /// How many pages the payer may dirty before a question is due.
    pub(crate) fn allowance_pages(&self, in_force: &ActivePolicy, machine: MachineSize) -> u64 {
        self.with(in_force, machine, |account| account.payer_pages.saturating_sub(account.unpaid_pages))
    }

    /// Adds dirtied pages to the account.
    pub(crate) fn owes(&self, in_force: &ActivePolicy, machine: MachineSize, dirtied: &Dirtied) {
        self.with(in_force, machine, |account| match dirtied.unasked {
            true => account.unasked.add(dirtied),
            false => {
                account.unpaid_pages = account.unpaid_pages.saturating_add(dirtied.pages);
                account.unpaid_runs = account.unpaid_runs.saturating_add(dirtied.runs);
            }
        });
    }

    /// Whether the payer has used up its allowance.
    pub(crate) fn has_used_up(&self, in_force: &ActivePolicy, machine: MachineSize) -> bool {
        self.with(in_force, machine, |account| {
            account.unpaid_pages >= account.payer_pages || account.unpaid_runs >= account.payer_runs
        })
    }

    /// How many more pages the payer may dirty under a policy that paces.
    pub(crate) fn paced_pages(
        &self,
        in_force: &ActivePolicy,
        machine: MachineSize,
        device: &LockedMemory,
        dirtier: &Dirtier,
    ) -> u64 {
        self.with(in_force, machine, |account| {
            let payer = &mut *account.memory;
            in_force.ask(device, |policy, device, shared| policy.allowance_pages(dirtier, payer, device, shared))
        })
    }

    /// Asks the policy for a decision about the payer, and whether to wake the device's flusher.
    pub(crate) fn ask(
        &self,
        in_force: &ActivePolicy,
        machine: MachineSize,
        device: &LockedMemory,
        view: &mut View,
        so_far: &PayerCounts,
    ) -> (Admission, bool) {
        self.with(in_force, machine, |account| {
            let Dirtied { pages: unasked, runs: unasked_runs, .. } = std::mem::take(&mut account.unasked);
            let (dirtied, runs) = (account.unpaid_pages, account.unpaid_runs);
            view.payer = PayerCounts { dirtied, runs, unasked, unasked_runs, ..*so_far };
            let mut pace = Pace {
                payer_pages: account.payer_pages,
                payer_runs: account.payer_runs,
                unpaid_pages: account.unpaid_pages,
                unpaid_runs: account.unpaid_runs,
                wakes_flusher: false,
            };
            let payer = &mut *account.memory;
            let admission =
                in_force.ask(device, |policy, device, shared| policy.admit(view, payer, device, shared, &mut pace));
            (account.payer_pages, account.payer_runs) = (pace.payer_pages, pace.payer_runs);
            (account.unpaid_pages, account.unpaid_runs) = (pace.unpaid_pages, pace.unpaid_runs);
            (admission, pace.wakes_flusher)
        })
    }
}

/// The most accounts of clients without a write under way.
const CLIENTS_MAX: usize = 256;

/// A device's accounts.
#[derive(Default)]
pub(crate) struct ClientPayers(Mutex<Accounts>);

#[derive(Default)]
struct Accounts {
    by_client: BTreeMap<Client, (u64, Arc<Payer>)>,
    /// Counts requests for an account.
    questions: u64,
}

impl ClientPayers {
    /// The account of a client.
    pub(crate) fn of(&self, client: &Client) -> Arc<Payer> {
        let mut accounts = lock(&self.0);
        accounts.questions += 1;
        let now = accounts.questions;
        if let Some((asked, account)) = accounts.by_client.get_mut(client) {
            *asked = now;
            return Arc::clone(account);
        }
        if accounts.by_client.len() >= CLIENTS_MAX {
            let idle = accounts.by_client.iter().filter(|(_, (_, account))| Arc::strong_count(account) == 1);
            let oldest = idle.min_by_key(|(_, (asked, _))| *asked).map(|(client, _)| client.clone());
            oldest.map(|client| accounts.by_client.remove(&client));
        }
        let account = Arc::<Payer>::default();
        accounts.by_client.insert(client.clone(), (now, Arc::clone(&account)));
        account
    }
}

#[cfg(test)]
mod tests;
