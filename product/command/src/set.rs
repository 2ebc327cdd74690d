//! `afflux set`: changes knobs of a running server.
//!
//! Owns: asking, and printing the values set, with the values in force where they differ.
//! Does not own: checking the values: the server does that, against its knobs in force.
//! Invariants: on success each value is already in force; on failure none has changed.

use crate::args;
use crate::control::client::ControlClient;
use crate::control::messages::{ControlReply, ControlRequest};
use crate::watch;
use afflux_report::failure::Outcome;
use afflux_report::{output, units};

pub(crate) fn run(args: &args::Set) -> Outcome {
    let mut client = ControlClient::connect(args.target.control.as_deref())?;
    client.ask(&ControlRequest::Set { assignments: args.assignments.clone(), device: args.device.clone() })?;
    args.assignments.iter().try_for_each(|_| show(&mut client, args.json))
}

/// Prints the reply for one knob.
fn show(client: &mut ControlClient, json: bool) -> Outcome {
    let reply = client.reply()?;
    let ControlReply::Set { knob, unit, value, device, in_force } = &reply else {
        return Err(client.unexpected(&reply));
    };
    if json {
        output::say(watch::json_line(&reply)?.trim_end());
    } else {
        let whom = output::shown(device.as_deref().unwrap_or("all devices"));
        let (knob, unit) = (output::shown(knob), output::shown(unit));
        output::say(format_args!("{knob} is now {} {unit} for {whom}", units::count(*value)));
        for gauge in in_force {
            let whom = output::shown(gauge.device.as_deref().unwrap_or("this server"));
            output::say(format_args!("  on {whom}: {}", gauge.told_with(units::count)));
        }
    }
    Ok(())
}
