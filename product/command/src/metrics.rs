//! Figures for Prometheus, and the source of each.
//!
//! Owns: the addresses that `--metrics` takes, the rate at which figures are read.
//! Does not own: the text and the HTTP (crate `metrics`), the figures of a server (`serve::live::figures`) and of a
//! governor.
//! Invariants: a request reads figures that the server keeps anyway: a client's call does no extra work for them. No
//! label is a client's or a file's name, since their number has no bound. `afflux top` shows those.

pub(crate) mod governor;
pub(crate) mod names;
pub(crate) mod process;

use std::net::SocketAddr;

use afflux_metrics::MetricsListener;

use crate::port_holder;
use afflux_report::failure::{OrFailed, Outcome};

/// Listens at the address of `--metrics`, without answering yet.
pub(crate) fn bind(address: Option<SocketAddr>) -> Outcome<Option<MetricsListener>> {
    let Some(address) = address else { return Ok(None) };
    MetricsListener::bind(address).map(Some).map_err(|error| port_holder::cannot_listen("--metrics", address, &error))
}

/// Answers requests for figures, and returns the address.
pub(crate) fn start(listener: MetricsListener, figures: impl Fn() -> String + Send + 'static) -> Outcome<SocketAddr> {
    let started = listener.address().and_then(|address| listener.start(figures).map(|()| address));
    started.or_failed("--metrics")
}

#[cfg(test)]
pub(crate) mod tests;
