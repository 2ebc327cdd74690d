//! The debts of clients for new files.
//!
//! An open file is a payer with an allowance. A client that makes a new file for each write would have a new allowance
//! for each, and never pay. So the client pays for the first bytes of a file, with one account a device.
//!
//! Owns: these accounts, by client; how many are remembered.
//! Does not own: the account itself, when a file ceases to be new (`payer`).
//! Invariants: of the clients that write no new files now, only the last [`CLIENTS_MAX`] are remembered. The lock is a
//! leaf.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afflux_device::client::Client;
use afflux_pages::wait::lock;

use crate::devices::payer::Payer;

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
