//! `afflux unlock`: ends a client that holds locks and is gone.
//!
//! Owns: asking, and printing which client it was.
//! Does not own: who holds locks, and ending a client (the server).
//! Invariants: on success the client's locks are free already.

use afflux_report::failure::Outcome;
use afflux_report::{output, units};

use crate::args;
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest};
use crate::watch;

pub(crate) fn run(args: &args::Unlock) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Unlock { client: args.client.clone() })?;
    let reply = client.reply()?;
    let ControlReply::Unlocked { clients } = &reply else { return Err(client.unexpected(&reply)) };
    if args.json {
        output::say(watch::json_line(&reply)?.trim_end());
        return Ok(());
    }
    for ended in clients {
        let locks = units::plural(ended.ranges, "lock");
        output::say(format_args!("ended client {} ({}), which had {locks}", ended.number, output::shown(&ended.name)));
    }
    Ok(())
}
