//! Reads the configuration again while the server runs.
//!
//! Owns: applying the settings that act at once, the report about the others.
//! Does not own: reading and checking settings (`configuration`), the request for a reload (`service`).
//! Invariants: a configuration that cannot be read or makes no sense changes nothing. After a reload, a knob in the
//! configuration has that value, and a knob that the configuration no longer names has its default. Other changes by
//! `afflux set` stay.

use std::collections::BTreeSet;

use clap::Id;
use tracing::error;

use crate::configuration::{self, Configuration};
use crate::serve::front::admission;
use crate::serve::live::{self, Running};
use crate::{args, service, settings};
use afflux_linux_device::HostMemory;
use afflux_report::{output, units};

/// A server's settings in force, and their source.
pub(crate) struct Reload<'a> {
    pub(crate) args: &'a args::Serve,
    pub(crate) host: HostMemory,
    pub(crate) in_force: Configuration,
}

impl Reload<'_> {
    /// Reads everything again, and applies the settings that act at once.
    pub(crate) fn again(&mut self, running: &Running) {
        service::notify_reloading();
        let serving = format!("Serving on {}", running.front.address());
        match configuration::load(self.args, self.host) {
            Ok(wanted) => {
                if !self.try_apply(wanted, running) {
                    return service::notify_ready(&format!("The last reload failed in part, see the log. {serving}"));
                }
            }
            Err(failure) => {
                error!("the configuration stays as it was: {failure}");
                // The service manager waits for the end of each reload that it was notified of, and only this message
                // ends it.
                return service::notify_ready(&format!("The last reload failed, see the log. {serving}"));
            }
        }
        service::notify_ready(&serving);
    }

    /// Applies the settings. Returns whether the engine accepted every value.
    fn try_apply(&mut self, wanted: Configuration, running: &Running) -> bool {
        wanted.warnings.iter().for_each(|warning| output::remark(format_args!("warning: {warning}")));
        let (waiting, mut acting) = self.changed(&wanted);
        if !acting.is_empty() {
            let at_once = &wanted.settings.at_once;
            let rules = admission::rules(at_once, &mut Vec::new());
            acting.push(format!("answers {}", admission::describe(&rules)));
            running.front.set_mount_read_only(at_once.read_only);
            if let Some(nfs) = &running.front.nfs {
                nfs.server.admit(rules.into());
                running.volume.set_names_durable(!at_once.async_metadata);
            }
        }
        let mut wrong = Vec::new();
        set_knobs(running, &self.in_force, &wanted, &mut acting, &mut wrong);
        let acting =
            if acting.is_empty() { "no setting that acts at once has changed".to_owned() } else { acting.join("; ") };
        output::remark(format_args!("The configuration was read again: {}.", output::shown(acting)));
        wrong.iter().for_each(|why| error!("{why}"));
        if !waiting.is_empty() {
            output::remark(format_args!("note: acts at the next start only: {}", waiting.join(", ")));
        }
        // The next reload reports waiting settings again.
        let mut given = std::mem::take(&mut self.in_force.given);
        given.retain(|name, _| !settings::may_act_at_once(name));
        given.extend(wanted.given.into_iter().filter(|(name, _)| settings::may_act_at_once(name)));
        self.in_force = Configuration { given, ..wanted };
        wrong.is_empty()
    }

    /// The settings whose text differs from the start: those that wait for the next start, and those that act at once.
    fn changed(&self, wanted: &Configuration) -> (Vec<String>, Vec<String>) {
        let (old, new) = (&self.in_force.given, &wanted.given);
        let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
        let (acting, waiting): (Vec<_>, Vec<_>) = changed.partition(|name| settings::may_act_at_once(name));
        let names = |of: Vec<&Id>| of.into_iter().map(Id::to_string).collect();
        (names(waiting), names(acting))
    }
}

/// Gives knobs the values of `wanted`, and their defaults to knobs that only `before` has. Adds changes to `acting`,
/// and the engine's refusals to `wrong`.
fn set_knobs(
    running: &Running,
    before: &Configuration,
    wanted: &Configuration,
    acting: &mut Vec<String>,
    wrong: &mut Vec<String>,
) {
    let settings = running.engine.settings();
    let name = |assignment: &str| assignment.split('=').next().unwrap_or_default().to_owned();
    let named: BTreeSet<String> = wanted.knobs.iter().map(|knob| name(knob)).collect();
    let dropped = before.knobs.iter().map(|knob| name(knob)).filter(|knob| !named.contains(knob));
    let known = dropped.filter_map(|knob| settings.named(&knob).ok());
    let defaults = known.map(|knob| (knob, settings.info(knob).default));
    let given = wanted.knobs.iter().filter_map(|assignment| settings.parse(assignment).ok());
    let (given, ignored): (Vec<_>, Vec<_>) = given.partition(|(knob, _)| running.engine.refuse_ignored(*knob).is_ok());
    wrong.extend(ignored.iter().filter_map(|(knob, _)| Some(running.engine.refuse_ignored(*knob).err()?.to_string())));
    let mut left: Vec<_> = defaults.chain(given).filter(|(knob, value)| settings.get(*knob) != *value).collect();
    // Two knobs that rise together, such as a threshold and a limit, are accepted in one of the two orders only.
    loop {
        let count = left.len();
        left.retain(|(knob, value)| {
            let is_set = running.engine.set_knob(*knob, *value).is_ok();
            if is_set {
                let info = settings.info(*knob);
                acting.push(format!("{} is now {}", info.name, info.told(*value, units::count)));
                acting.extend(live::of_knob(running.served(), *knob, None).iter().map(live::words));
            }
            !is_set
        });
        if left.is_empty() || left.len() == count {
            break;
        }
    }
    let refused = left.iter().filter_map(|(knob, value)| running.engine.set_knob(*knob, *value).err());
    wrong.extend(refused.map(|error| error.to_string()));
}
