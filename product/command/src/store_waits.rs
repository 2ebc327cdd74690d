//! The words about requests that wait for a store.
//!
//! Owns: the line of a command that opens or checks a volume.
//! Does not own: the waits (`afflux_object_store`); what a running server tells (`stat`, `delays`, the log).
//! Invariants: the line is on standard error.

use afflux_object_store::RequestWaits;
use afflux_report::{output, units};

/// Says that a request waits.
pub(crate) fn tell(url: &str, waits: &RequestWaits) {
    let why = output::bracketed(waits.why.as_ref());
    let requests = units::plural(waits.requests, "request");
    let age = units::latency(waits.oldest_ns);
    output::remark(format_args!("{}: {requests} without an answer, the oldest for {age}{why}", output::shown(url)));
}
