//! `afflux drain`: has a running server write everything now.
//!
//! Owns: asking, showing progress, the verdict.
//! Does not own: the writing (the server's engine).
//! Invariants: success means that all pages that were dirty at the call are durable.

use crate::args;
use crate::control::client::Client;
use crate::control::messages::{Drained, Reply, Request};
use crate::progress::{self, DrainDisplay};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

pub(crate) fn run(args: &args::Drain) -> Outcome {
    let mut client = Client::connect(args.target.control.as_deref())?;
    client.ask(&Request::Drain)?;
    let mut display = DrainDisplay::new(!args.json, "");
    loop {
        let reply = client.reply()?;
        if args.json {
            let line = serde_json::to_string(&reply).map_err(|error| Failure::failed(error.to_string()))?;
            output::say(line);
        }
        match reply {
            Reply::Progress(progress) => display.show(progress),
            Reply::Drained(drained) => {
                display.finish();
                return verdict(&drained, args.json);
            }
            other => return Err(client.unexpected(&other)),
        }
    }
}

fn verdict(drained: &Drained, json: bool) -> Outcome {
    if !drained.failed.is_empty() {
        return Err(Failure::failed(progress::unwritten("could not write everything:", &drained.failed)));
    }
    if !json {
        output::say(progress::done(drained));
    }
    Ok(())
}
