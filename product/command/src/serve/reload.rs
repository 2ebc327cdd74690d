//! Reads the configuration again while the server runs.
//!
//! Owns: the list of settings that act at once, the report about the others.
//! Does not own: reading and checking settings (`configuration`), the request for a reload (`signals`).
//! Invariants: a configuration that cannot be read or makes no sense changes nothing. After a reload, a knob in the
//! configuration has that value, and a knob that the configuration no longer names has its default. Other changes by
//! `afflux set` stay.

use std::collections::BTreeSet;

use tracing::error;

use super::admission;
use super::running::Running;
use crate::args;
use crate::configuration::{self, Configuration};
use crate::service;
use afflux_linux::HostMemory;
use afflux_report::{output, units};

/// The settings that act at once, beside all knobs.
const AT_ONCE: &[&str] = &["allow", "anon", "any_port", "async_metadata", "read_only", "squash"];

/// A server's settings in force, and their source.
pub(super) struct Reload<'a> {
    pub(super) args: &'a args::Serve,
    pub(super) host: HostMemory,
    pub(super) in_force: Configuration,
}

impl Reload<'_> {
    /// Reads everything again, and applies the settings that act at once.
    pub(super) fn again(&mut self, running: &Running) {
        service::notify_reloading();
        let serving = format!("Serving on {}", running.listen);
        match configuration::load(self.args, self.host) {
            Ok(wanted) => {
                if !self.take(wanted, running) {
                    return service::notify_ready(&format!("The last reload failed in part, see the log. {serving}"));
                }
            }
            Err(failure) => {
                error!("the configuration stays as it was: {failure}");
                // The service manager waits for the end of each reload that it was told of, and only this message ends
                // it.
                return service::notify_ready(&format!("The last reload failed, see the log. {serving}"));
            }
        }
        service::notify_ready(&serving);
    }

    /// Applies the settings. Returns whether the engine accepted every value.
    fn take(&mut self, wanted: Configuration, running: &Running) -> bool {
        wanted.warnings.iter().for_each(|warning| output::remark(format_args!("warning: {warning}")));
        let (waiting, mut acting) = self.changed(&wanted);
        if !acting.is_empty() {
            let rules = admission::rules(&wanted, &mut Vec::new());
            acting.push(format!("answers {}", admission::describe(&rules)));
            running.server.admit(rules.into());
            running.volume.set_names_durable(!wanted.async_metadata);
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
        let waits = |name: &&'static str| waiting.iter().any(|it| it == *name);
        let mut given = wanted.given.clone();
        given.retain(|name, _| !waits(name));
        let old = self.in_force.given.iter().filter(|(name, _)| waits(name));
        given.extend(old.map(|(name, text)| (*name, text.clone())));
        let directories = std::mem::take(&mut self.in_force.directories);
        self.in_force = Configuration { directories, given, ..wanted };
        wrong.is_empty()
    }

    /// The settings whose text differs from the start: those that wait for the next start, and those that act at once.
    fn changed(&self, wanted: &Configuration) -> (Vec<String>, Vec<String>) {
        let (old, new) = (&self.in_force.given, &wanted.given);
        let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
        let changed = names.into_iter().filter(|name| old.get(name) != new.get(name)).map(str::to_owned);
        let (acting, mut waiting): (Vec<_>, Vec<_>) = changed.partition(|name| AT_ONCE.contains(&name.as_str()));
        if self.in_force.directories != wanted.directories {
            waiting.insert(0, "directories".to_owned());
        }
        (waiting, acting)
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
    let mut left: Vec<_> = defaults.chain(given).filter(|(knob, value)| settings.get(*knob) != *value).collect();
    // Two knobs that rise together, such as a threshold and a limit, are accepted in one of the two orders only.
    loop {
        let count = left.len();
        left.retain(|(knob, value)| {
            let is_set = running.engine.set_knob(*knob, *value).is_ok();
            if is_set {
                let info = settings.info(*knob);
                acting.push(format!("{} is now {} {}", info.name, units::count(*value), info.unit));
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
