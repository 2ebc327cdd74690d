//! Where a flight's next step runs: a ring, or a thread of the device.
//!
//! Owns: the path of each request to a ring or a thread, the start of a write that has its grant.
//! Does not own: the steps (`flight`), which writes may be under way together (`write_gate`), rings and threads
//! (`reactor`, `pool`).
//! Invariants: a launch never blocks. A flight launched on a reactor, or by a thread that waits in `block_on`, is done
//! by that thread. The thread uses its ring, or a system call if it has no other work. Other threads send theirs to a
//! reactor. No reactor that others share is held by a slow disk. The device's own threads do reservations, and the
//! kernel's threads begin such a reactor's writes and those reads that the host may hold (`core`). The thread of the
//! device's flusher begins its writes itself. The memory of a request belongs to the reactor until the kernel has
//! reported.

use std::sync::Arc;

use afflux_engine::{DeviceError, Operation};

use super::flight::{FlightStep, RequestFlight};
use super::write_gate::{Begins, GatedWrite, WriteGrant};
use crate::reactor::io::{Owner, RingOperation};
use crate::reactor::{Mail, Reactor};
use crate::watch::ReportedLook;

/// A transfer of at least this size begins at once, not at the end of the reactor's round. Until then the disk might
/// have nothing to do while a reader copies the pages that it has read ahead. Beside such a transfer, one system call
/// is cheap.
const AT_ONCE_BYTES: u32 = 64 << 10;

/// Takes a flight to where its next step runs: this reactor, a worker thread, or another reactor.
pub(super) fn launch(mut flight: Box<RequestFlight>) {
    let flights = Arc::clone(flight.flights());
    let core = &flights.core;
    if !core.platform.is_on_ring() || matches!(flight.operation(), Operation::Reserve { .. }) {
        return block(flight);
    }
    match core.platform.driving_reactor() {
        Some(reactor) => go_on(&reactor, flight),
        None => {
            // An answer needs no reactor.
            if let FlightStep::Answer(result) = flight.next(false) {
                return answer(flight, result);
            }
            let mail = Mail::Run(Box::new(move |reactor| go_on(reactor, flight)));
            // A stopped platform returns the mail; dropping it answers the request as lost.
            drop(core.platform.next_reactor().send(mail));
        }
    }
}

/// Makes the next step on this thread's reactor.
fn go_on(reactor: &Reactor, mut flight: Box<RequestFlight>) {
    match flight.next(false) {
        FlightStep::Answer(result) => answer(flight, result),
        FlightStep::Block => block(flight),
        FlightStep::Do(mut io) => {
            match &mut io {
                RingOperation::ReadV { may_wait, .. } => *may_wait = reactor.is_shared() && flight.may_read_wait(),
                RingOperation::WriteV { may_wait, .. } | RingOperation::WriteUncached { may_wait, .. } => {
                    *may_wait = reactor.is_shared()
                }
                _ => {}
            }
            let is_large = flight.moves_bytes() >= AT_ONCE_BYTES;
            // SAFETY: `io` points into the flight's own vectors, they into the request's memory, and its flight holds
            // its descriptor.
            if let Err(flight) = unsafe { reactor.start(io, flight) } {
                block(flight);
            } else if is_large {
                reactor.submit();
            }
        }
    }
}

/// Makes all remaining steps on a worker thread.
fn block(mut flight: Box<RequestFlight>) {
    let flights = Arc::clone(flight.flights());
    let core = &flights.core;
    core.pool.post_on(flight.lane(), move || {
        let result = loop {
            match flight.next(true) {
                FlightStep::Answer(result) => break result,
                FlightStep::Block => unreachable!("blocking is allowed here"),
                FlightStep::Do(io) => {
                    // SAFETY: as in `go_on`; the call ends before the flight goes on.
                    let result = unsafe { io.perform() };
                    if let Err(error) = flight.advance(result) {
                        break Err(error);
                    }
                }
            }
        };
        let _telling = ReportedLook::after(0);
        answer(flight, result);
    });
}

fn answer(flight: Box<RequestFlight>, result: Result<(), DeviceError>) {
    if result == Err(DeviceError::NoSpace) {
        flight.flights().refresh_free_bytes(0);
    }
    flight.answer(result);
}

impl Owner for RequestFlight {
    fn completed(mut self: Box<Self>, result: i32) {
        match self.advance(result) {
            Ok(()) => launch(self),
            Err(error) => answer(self, Err(error)),
        }
    }
}

impl GatedWrite for RequestFlight {
    fn end(&self) -> u64 {
        self.end()
    }

    fn file_bytes(&self) -> u64 {
        self.request().file_bytes()
    }

    fn take_grant(&mut self, grant: WriteGrant, begins: Begins) {
        self.grant = Some(grant);
        if let Begins::Leads(size) = begins {
            self.grows_to = Some(size);
        }
    }

    fn begin(self: Box<Self>) {
        launch(self);
    }
}
