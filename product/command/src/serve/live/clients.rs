//! Clients of version 4, as the control socket sees them.
//!
//! Owns: which clients a name means, the reply to each question about clients, the end of a client on a user's request.
//! Does not own: clients and their state (`afflux_nfs`), locks (the volume), the form of messages (`control`).
//! Invariants: nothing here waits for a device. A list of a client's state has a bound, which the reply reports.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use afflux_frontend::{Party, Peer};
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::host_path;
use afflux_nfs::{ClientInfo, ClientStateInfo, ClientStateKind, DelegationStatus};
use afflux_tls::SecuredPeer;
use afflux_volume::{HeldBy, LockMode, Share};
use tracing::info;

use crate::control::messages::{ClientGauges, ClientStateGauges, ControlReply, LockerGauges, OpenOrLock};
use crate::serve::live::Running;
use afflux_report::output::shown;

/// Most clients in one reply.
const CLIENTS_A_LINE: usize = 1024;
/// Most opens and locks in one reply.
const STATES_A_LINE: usize = 128;
/// Most opens and locks of a client that are shown.
const STATES_SHOWN_MAX: usize = 4096;

impl Running {
    /// The clients of version 4, by number.
    fn clients(&self) -> Vec<ClientInfo> {
        self.front.nfs.as_ref().map(|nfs| nfs.server.clients()).unwrap_or_default()
    }

    /// Clients with opens or locks, and others that hold locks.
    pub(super) fn lockers(&self) -> Vec<LockerGauges> {
        let clients = self.clients();
        let has_state = |it: &&ClientInfo| it.opens + it.ranges + it.waiting > 0;
        let known: BTreeSet<_> = clients.iter().filter_map(|it| it.holder).collect();
        let others = self.volume.locks().held().into_iter().filter(|it| !known.contains(&it.holder));
        clients.iter().filter(has_state).map(locker).chain(others.map(locker_elsewhere)).collect()
    }

    /// The clients that a number, an address or a user means.
    fn meant(&self, client: &str) -> Result<Vec<ClientInfo>, String> {
        let clients = self.clients();
        let meant: Vec<ClientInfo> = clients.iter().filter(|it| is_meant(it, client)).cloned().collect();
        if !meant.is_empty() {
            return Ok(meant);
        }
        if let Some(mount) = self.lockers().iter().find(|it| it.number.is_none() && it.name == client) {
            return Err(format!("'{}' are no client: end the program that has the lock", shown(&mount.name)));
        }
        let known: Vec<String> =
            clients.iter().map(|it| format!("{} ({})", it.id.number(), shown(it.name()))).collect();
        let known =
            if known.is_empty() { "there is none".to_owned() } else { format!("there are: {}", known.join("; ")) };
        Err(format!("no client '{}' of version 4; {known}", shown(client)))
    }

    /// Reports the clients. With a name, reports the named clients, with their opens and locks.
    pub(super) fn tell_clients(
        &self,
        client: Option<&str>,
        send: &mut dyn FnMut(ControlReply) -> io::Result<()>,
    ) -> io::Result<()> {
        let secured = self.front.nfs.iter().filter_map(|nfs| nfs.tls.as_ref()).flat_map(|tls| tls.server.secured());
        let secured: Vec<SecuredPeer> = secured.collect();
        match client.map(|client| self.meant(client)) {
            Some(Err(reason)) => return send(ControlReply::Refused { reason, wrong_use: true }),
            Some(Ok(meant)) => {
                for client in meant {
                    send(ControlReply::Clients { clients: vec![gauges(&client, &secured)] })?;
                    self.tell_states(&client, send)?;
                }
            }
            None => {
                let clients: Vec<ClientGauges> = self.clients().iter().map(|it| gauges(it, &secured)).collect();
                let mut parts = clients.chunks(CLIENTS_A_LINE).map(<[_]>::to_vec);
                parts.try_for_each(|clients| send(ControlReply::Clients { clients }))?;
            }
        }
        let missing = self.front.nfs.as_ref().map_or(0, |nfs| nfs.server.missing_clients());
        send(ControlReply::ClientsEnded { missing: missing as u64 })
    }

    /// Reports what a client has open and locked.
    fn tell_states(&self, client: &ClientInfo, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()> {
        let Some(nfs) = &self.front.nfs else { return Ok(()) };
        let (states, others) = nfs.server.states_of(client.id, STATES_SHOWN_MAX);
        for part in states.chunks(STATES_A_LINE) {
            send(ControlReply::ClientStates { states: part.iter().map(state).collect() })?;
        }
        if others > 0 {
            let what = OpenOrLock::Others { count: others as u64 };
            let others = ClientStateGauges { file: String::new(), owner: String::new(), what };
            send(ControlReply::ClientStates { states: vec![others] })?;
        }
        Ok(())
    }

    /// Ends the clients that a number, an address or a user means.
    pub(super) fn unlock(&self, client: &str) -> Result<Vec<LockerGauges>, String> {
        let mut ended = self.meant(client)?;
        let nfs = self.front.nfs.as_ref();
        ended.retain(|it| nfs.is_some_and(|nfs| nfs.server.try_end_client(it.id)));
        ended.iter().for_each(|it| {
            info!("ended client {} ({}), as requested on the control socket", it.id.number(), shown(it.name()))
        });
        Ok(ended.iter().map(locker).collect())
    }
}

/// Whether a name means a client: its number, its address, or the user of a program of this host.
fn is_meant(client: &ClientInfo, name: &str) -> bool {
    let of_address = || name.parse::<IpAddr>().is_ok_and(|address| Peer::from(address).party() == client.party);
    client.id.number().to_string() == name || client.party.to_string() == name || of_address()
}

fn locker(client: &ClientInfo) -> LockerGauges {
    LockerGauges {
        number: Some(client.id.number()),
        name: client.name(),
        opens: client.opens as u64,
        ranges: client.ranges as u64,
        denying: client.denying as u64,
        waiting: client.waiting as u64,
    }
}

fn locker_elsewhere(held: HeldBy) -> LockerGauges {
    LockerGauges {
        number: None,
        name: held.name,
        opens: 0,
        ranges: held.ranges as u64,
        denying: held.denying as u64,
        waiting: held.waiting as u64,
    }
}

/// A client, with the certificates of its machine.
fn gauges(client: &ClientInfo, secured: &[SecuredPeer]) -> ClientGauges {
    let of_client = secured.iter().filter(|peer| Peer::from(peer.address).party() == client.party);
    let certificates: BTreeSet<String> = of_client.filter_map(|peer| peer.name.clone()).collect();
    let (address, user) = match client.party {
        Party::User(uid) => (None, Some(uid)),
        Party::Orphans => (None, client.user),
        Party::Machine(_) => (Some(client.party.to_string()), client.user),
    };
    ClientGauges {
        number: client.id.number(),
        name: client.own_name.clone(),
        address,
        user,
        certificates: certificates.into_iter().collect(),
        version: client.minor_version.map(|minor| format!("4.{minor}")),
        status: client.status.name().to_owned(),
        lease_left_ns: client.lease_left_ns,
        sessions: client.sessions as u64,
        slots: client.slots as u64,
        slots_in_use: client.slots_in_use as u64,
        is_back_channel_down: client.is_back_channel_down,
        opens: client.opens as u64,
        denying: client.denying as u64,
        ranges: client.ranges as u64,
        waiting: client.waiting as u64,
        delegations: client.delegations as u64,
    }
}

fn state(of: &ClientStateInfo<LinuxPlatform>) -> ClientStateGauges {
    let path = of.held.as_ref().and_then(|held| host_path(held.node()));
    let file = path.map_or_else(|| format!("file number {}", of.file), |path| path.display().to_string());
    let what = match of.kind {
        ClientStateKind::Open(Share { access, deny }) => {
            OpenOrLock::Open { access: uses(access).to_owned(), deny: uses(deny).to_owned() }
        }
        ClientStateKind::Lock(span, mode) => {
            OpenOrLock::Lock { first: span.first(), last: span.last(), is_exclusive: mode == LockMode::Exclusive }
        }
        ClientStateKind::Delegation(status) => OpenOrLock::Delegation {
            is_recalled: status != DelegationStatus::Held,
            is_revoked: status == DelegationStatus::Revoked,
        },
    };
    ClientStateGauges { file, owner: of.owner.clone(), what }
}

/// Uses of a file in letters.
fn uses(bits: u8) -> &'static str {
    match (bits & Share::READ != 0, bits & Share::WRITE != 0) {
        (false, false) => "-",
        (true, false) => "r",
        (false, true) => "w",
        (true, true) => "rw",
    }
}
