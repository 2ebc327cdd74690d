//! Events of a governor: in words, as JSON, as lines of its log.
//!
//! Owns: these forms, and the severity of an event.
//! Does not own: the moment of an event.
//! Invariants: one line an event. Names of devices are strangers' text.

use std::time::Duration;

use afflux_govern::{EventKind, GovernorEvent, Values};
use serde_json::{Value, json};
use tracing::{info, warn};

use afflux_report::{output, units};

/// Prints an event in the requested form.
pub(super) fn say(event: &GovernorEvent, as_json: bool) {
    if as_json {
        output::say(object(event));
    } else {
        output::say(line(event));
    }
}

/// Logs an event of a governor that stays running. A change by another program, or a refusal by the kernel, is a
/// warning.
pub(super) fn log(event: &GovernorEvent) {
    let line = line(event);
    match &event.what {
        EventKind::Foreign(_) | EventKind::Refused(_) => warn!("{line}"),
        EventKind::Limited { .. }
        | EventKind::Released
        | EventKind::PutBack
        | EventKind::Alone(_)
        | EventKind::Gone => info!("{line}"),
    }
}

pub(super) fn line(event: &GovernorEvent) -> String {
    let device = output::shown(&event.device);
    match &event.what {
        EventKind::Limited { limit_bytes, bytes_per_second, budget_ns, .. } => {
            let (limit, budget) = (units::data(*limit_bytes), units::time(Duration::from_nanos(*budget_ns)));
            let speed = bytes_per_second.map_or_else(
                || "its write speed is not known yet".to_owned(),
                |speed| format!("it writes {}", units::rate(speed, Duration::from_secs(1))),
            );
            format!("{device}: at most {limit} may be dirty ({speed}, budget {budget})")
        }
        EventKind::Released => format!("{device}: fast enough, has the kernel's own limit"),
        EventKind::PutBack => format!("{device}: its settings are put back"),
        EventKind::Foreign(values) => format!("{device}: another program has set {}: left alone", values_text(*values)),
        EventKind::Alone(why) => format!("{device}: left alone: {why}"),
        EventKind::Gone => format!("{device}: gone"),
        EventKind::Refused(why) => format!("{device}: left alone: {}", output::shown(why)),
    }
}

pub(super) fn values_text(values: Values) -> String {
    let percent = f64::from(values.ratio_ppm) / 1e4;
    format!("strict_limit {} and max_ratio {percent} %", u32::from(values.strict))
}

/// The kind of an event, for programs.
pub(super) fn name(event: &GovernorEvent) -> &'static str {
    parts(event).0
}

fn object(event: &GovernorEvent) -> Value {
    let (name, mut object) = parts(event);
    (object["event"], object["device"], object["bdi"]) = (json!(name), json!(event.device), json!(event.bdi));
    object
}

/// An event's kind and its own figures.
fn parts(event: &GovernorEvent) -> (&'static str, Value) {
    match &event.what {
        EventKind::Limited { limit_bytes, ratio_ppm, bytes_per_second, budget_ns } => {
            let figures = json!({"limit_bytes": limit_bytes, "max_ratio_fine": ratio_ppm, "budget_ns": budget_ns,
                "bytes_per_second": bytes_per_second});
            ("limited", figures)
        }
        EventKind::Released => ("released", json!({})),
        EventKind::PutBack => ("put_back", json!({})),
        EventKind::Foreign(values) => {
            ("set_by_others", json!({"strict_limit": u32::from(values.strict), "max_ratio_fine": values.ratio_ppm}))
        }
        EventKind::Alone(why) => ("left_alone", json!({"why": why})),
        EventKind::Gone => ("gone", json!({})),
        EventKind::Refused(why) => ("refused", json!({"why": why})),
    }
}
