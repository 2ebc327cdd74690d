//! `afflux drain`: has a running server write everything now.
//!
//! Owns: asking, showing progress, the verdict.
//! Does not own: the writing (the server's engine).
//! Invariants: success means that all pages that were dirty at the call are durable.

use crate::args;
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, Drained};
use crate::progress::{self, DrainDisplay};
use crate::watch;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

pub(crate) fn run(args: &args::Drain) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    let said = |reply: &ControlReply| watch::json_line(reply).map(|line| output::say(line.trim_end()));
    let drained = follow(&mut client, args.json.then_some(&said))?;
    if !drained.failed.is_empty() {
        return Err(Failure::failed(progress::unwritten("could not write everything:", &drained.failed)));
    }
    if !args.json {
        output::say(progress::done(&drained));
    }
    Ok(())
}

/// Has the server write everything. `say` gets each reply; without it people see the progress.
pub(crate) fn follow(client: &mut ControlClient, say: Option<&dyn Fn(&ControlReply) -> Outcome>) -> Outcome<Drained> {
    client.ask(&ControlRequest::Drain)?;
    let mut display = DrainDisplay::new(say.is_none(), "");
    loop {
        let reply = client.reply()?;
        say.map_or(Ok(()), |say| say(&reply))?;
        match reply {
            ControlReply::Progress(progress) => display.show(progress),
            ControlReply::Drained(drained) => {
                display.finish();
                return Ok(drained);
            }
            other => return Err(client.unexpected(&other)),
        }
    }
}
