//! The rules of which callers this server answers, and as which user it carries out their calls. They follow from its
//! settings and its own privileges.
//!
//! Owns: building the rules, their description for the user.
//! Does not own: the rules (`frontend_nfs`), the settings.
//! Invariants: calls are carried out as other users only if the process can do that.

use std::net::SocketAddr;
use std::sync::Arc;

use afflux_linux_server::{UsersOfHost, may_act_as_others, peers_are_identified};
use afflux_nfs::{Rules, Squash};
use rustix::process::geteuid;

use crate::settings::{NfsVersion, ReloadedSettings};

/// The note at the start of a server with `--async-metadata`.
const ASYNC_METADATA_NOTE: &str = "changes of names and attributes are answered before they are durable \
    (--async-metadata): a crash of this host may undo the last ones, which clients take for done";

/// The note at the start of a server with version 4.
const VERSION_4_NOTE: &str = "locks hold among clients of NFS 4.1 and 4.2, and with programs on --mount; clients of \
    version 3 and programs of this host do not see them";

/// The same with `--posix-locks`.
const POSIX_LOCKS_NOTE: &str = "locks hold among clients of NFS 4.1 and 4.2, with programs on --mount, and with those of \
    this host that lock by fcntl; clients of version 3 do not see them";

/// Adds to `notes` what clients over the network do without: their owners, if the kernel reports none, and some locks.
pub(crate) fn note_limits(version: NfsVersion, posix_locks: bool, notes: &mut Vec<String>) {
    if version == NfsVersion::V4 {
        notes.push(if posix_locks { POSIX_LOCKS_NOTE } else { VERSION_4_NOTE }.to_owned());
    }
    if let Err(error) = peers_are_identified() {
        notes.push(format!(
            "this kernel does not tell whose a connection is (sock_diag, rtnetlink: {error}): calls of this machine's own \
             processes are refused"
        ));
    }
}

/// Builds the rules; adds remarks about them to `notes`.
pub(crate) fn rules(settings: &ReloadedSettings, notes: &mut Vec<String>) -> Rules {
    if settings.async_metadata {
        notes.push(ASYNC_METADATA_NOTE.to_owned());
    }
    let rules = if may_act_as_others() {
        Rules::of_callers(Arc::new(UsersOfHost::new()))
    } else {
        if geteuid().is_root() {
            notes.push(
                "all calls are carried out as root, for every caller: CAP_SETUID and CAP_SETGID are missing".into(),
            );
        }
        Rules::of_serving_user(geteuid().as_raw())
    };
    Rules {
        squash: settings.squash,
        anonymous: settings.anon,
        networks: settings.allow.clone(),
        any_port: settings.any_port,
        read_only: settings.read_only,
        has_host_groups: settings.groups,
        ..rules
    }
}

/// Describes the callers that the server answers.
pub(crate) fn describe(rules: &Rules) -> String {
    let here = match (rules.serving_user, rules.squash) {
        (None, Squash::All) => "everybody on this machine, as the anonymous user",
        (None, _) => "everybody on this machine, as themselves",
        (Some(_), Squash::All) => "everybody on this machine, all as this user",
        (Some(0), _) => "root's processes on this machine",
        (Some(_), _) => "this user's and root's processes on this machine, all as this user",
    };
    let only = if rules.read_only { ", for reading only" } else { "" };
    let networks: Vec<String> = rules.networks.iter().map(ToString::to_string).collect();
    if networks.is_empty() {
        return format!("{here}{only}");
    }
    let believed = match (rules.serving_user, rules.squash) {
        (Some(_), _) => "all as this user",
        (None, Squash::All) => "as the anonymous user",
        (None, Squash::Root) => "as the user that they claim, except root",
        (None, Squash::None) => "as the user that they claim, including root",
    };
    let ports = if rules.any_port { "from any port" } else { "from ports below 1024" };
    format!("{here}; {} {ports}, {believed}{only}", networks.join(", "))
}

/// Oddities of the rules for a server that listens at this address.
pub(crate) fn oddities(rules: &Rules, listen: SocketAddr) -> Vec<&'static str> {
    let mut odd = Vec::new();
    match (listen.ip().is_loopback(), rules.networks.is_empty()) {
        (false, true) => odd.push("nobody on another machine is answered without --allow"),
        (true, false) => odd.push("nobody on another machine can reach a loopback address: see --listen"),
        _ => {}
    }
    if !rules.networks.is_empty() && rules.squash == Squash::None && rules.serving_user.is_none() {
        odd.push("root of an allowed machine is root here (--squash none)");
    }
    odd
}

#[cfg(test)]
mod tests;
