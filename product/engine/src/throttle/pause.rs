//! The payer of a write call, and its pauses.
//!
//! Owns: the account that pays, the cause of a pause.
//! Does not own: the record of a pause (`call`, `devices::waits`), the waiting.
//! Invariants: if the device hangs, that is the cause of its writers' pauses.

use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::platform::Platform;
use afflux_device::policy::PauseCause;

use crate::base::Base;
use crate::call::{CallWait, FileCall};
use crate::devices::file::FileInner;
use crate::devices::payer::Payer;
use crate::devices::waits::{PayerId, WaitsFor};

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
    pub(super) fn account(&self) -> &Payer {
        self.client_payer.as_deref().unwrap_or(&self.file.payer)
    }

    /// It has dirtied `pages` pages.
    pub(super) fn dirtied(&self, pages: u64) {
        if self.client_payer.is_some() {
            self.file.payer.note_client_dirtied(pages);
        }
    }

    /// The number of clients with waiting payers, and of its own client's waiting payers, both including this one.
    pub(super) fn sharing(&self) -> (u64, u64) {
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
