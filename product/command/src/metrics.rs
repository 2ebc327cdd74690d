//! Figures for Prometheus, and the source of each.
//!
//! Owns: the addresses that `--metrics` takes, the errors of listening on one, the rate at which figures are read.
//! Does not own: the text and the HTTP (crate `metrics`), the figures of a server (`serve::live::figures`) and of a
//! governor.
//! Invariants: a request reads figures that the server keeps anyway: a client's call does no extra work for them. No
//! label is a client's or a file's name, since their number has no bound. `afflux top` shows those.

pub(crate) mod governor;
pub(crate) mod names;
pub(crate) mod process;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use afflux_metrics::MetricsListener;

use crate::port_holder::{self, PortHolder};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;

/// Listens at the address of `--metrics`, without answering yet.
pub(crate) fn bind(address: Option<SocketAddr>) -> Outcome<Option<MetricsListener>> {
    let Some(address) = address else { return Ok(None) };
    MetricsListener::bind(address).map(Some).map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let ip = address.ip();
    Failure::failed(match error.kind() {
        ErrorKind::AddrInUse => {
            let holder = port_holder::of(address);
            let named = |PortHolder { process, program }| format!(" ({}, process {process})", output::shown(program));
            let holder = holder.map(named).unwrap_or_default();
            format!(
                "--metrics: {address} is in use by another program{holder}; choose another port, or {} for a free one",
                SocketAddr::new(ip, 0)
            )
        }
        ErrorKind::AddrNotAvailable => format!("--metrics: {ip} is not an address of this machine"),
        ErrorKind::PermissionDenied => {
            format!("--metrics: this user may not listen on {address}; ports from 1024 up need no privilege")
        }
        _ => format!("--metrics: cannot listen on {address}: {error}"),
    })
}

/// Answers requests for figures, and returns the address.
pub(crate) fn start(listener: MetricsListener, figures: impl Fn() -> String + Send + 'static) -> Outcome<SocketAddr> {
    let started = listener.address().and_then(|address| listener.start(figures).map(|()| address));
    started.or_failed("--metrics")
}

#[cfg(test)]
pub(crate) mod tests;
