//! Changes of a running server: `afflux set`, `afflux unlock` and `afflux drain`.
//!
//! Owns: asking, showing progress, printing the outcome.
//! Does not own: the change: the server checks the values of knobs, knows the clients, and writes.
//! Invariants: on success each knob's value is in force, the files and locks of an ended client are free, and all pages
//! that were dirty at the call of a drain are durable. If one knob is refused, none has changed.

use crate::control::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest, Drained};
use crate::progress::{self, DrainDisplay};
use crate::{args, knobs, watch};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, units};

pub(crate) fn set(args: &args::Set) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Set { assignments: args.assignments.clone(), device: args.device.clone() })?;
    args.assignments.iter().try_for_each(|_| show_knob(&mut client, args.json))
}

/// Prints the reply for one knob: the value set, and the values in force where they differ.
fn show_knob(client: &mut ControlClient, json: bool) -> Outcome {
    let reply = client.reply()?;
    let ControlReply::Set { knob, value, device, in_force, .. } = &reply else {
        return Err(client.unexpected(&reply));
    };
    if json {
        watch::say_json(&reply);
        return Ok(());
    }
    let settings = knobs::of_server();
    let known = settings.named(knob).map_err(Failure::failed)?;
    output::say(knobs::in_force_words(settings.info(known), *value, device.as_deref()));
    for gauge in in_force {
        let whom = output::shown(gauge.device.as_deref().unwrap_or("this server"));
        output::say(format_args!("  on {whom}: {}", gauge.told_with(units::count)));
    }
    Ok(())
}

/// Ends a client.
pub(crate) fn unlock(args: &args::Unlock) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Unlock { client: args.client.clone() })?;
    let reply = client.reply()?;
    let ControlReply::Unlocked { clients } = &reply else { return Err(client.unexpected(&reply)) };
    if args.json {
        watch::say_json(&reply);
        return Ok(());
    }
    for ended in clients {
        let (opens, locks) = (units::plural(ended.opens, "open file"), units::plural(ended.ranges, "lock"));
        let number = ended.number.unwrap_or_default();
        output::say(format_args!(
            "ended client {number} ({}), which had {opens} and {locks}",
            output::shown(&ended.name)
        ));
    }
    Ok(())
}

/// Has the server write everything now.
pub(crate) fn drain(args: &args::Drain) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    let drained = follow_drain(&mut client, args.json.then_some(&watch::say_json))?;
    if !drained.failed.is_empty() {
        return Err(Failure::failed(progress::unwritten("could not write everything:", &drained.failed)));
    }
    if !args.json {
        output::say(progress::done(&drained));
    }
    Ok(())
}

/// Has the server write everything. `say` gets each reply; without it people see the progress.
pub(crate) fn follow_drain(client: &mut ControlClient, say: Option<&dyn Fn(&ControlReply)>) -> Outcome<Drained> {
    client.ask(&ControlRequest::Drain)?;
    let mut display = DrainDisplay::new(say.is_none(), "");
    loop {
        let reply = client.reply()?;
        say.iter().for_each(|say| say(&reply));
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
