//! `afflux drain`: has a running server write everything now.
//!
//! Owns: asking, showing progress, the verdict.
//! Does not own: the writing (the server's engine).
//! Invariants: success means that all pages that were dirty at the call are durable.

use crate::args;
use crate::control::client::Client;
use crate::control::messages::{Drained, Reply, Request};
use crate::progress::{self, DrainDisplay};
use crate::watch;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

pub(crate) fn run(args: &args::Drain) -> Outcome {
    let mut client = Client::connect(args.target.control.as_deref())?;
    let said = |reply: &Reply| watch::json_line(reply).map(|line| output::say(line.trim_end()));
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
pub(crate) fn follow(client: &mut Client, say: Option<&dyn Fn(&Reply) -> Outcome>) -> Outcome<Drained> {
    client.ask(&Request::Drain)?;
    let mut display = DrainDisplay::new(say.is_none(), "");
    loop {
        let reply = client.reply()?;
        say.map_or(Ok(()), |say| say(&reply))?;
        match reply {
            Reply::Progress(progress) => display.show(progress),
            Reply::Drained(drained) => {
                display.finish();
                return Ok(drained);
            }
            other => return Err(client.unexpected(&other)),
        }
    }
}
