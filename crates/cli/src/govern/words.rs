//! Events of a governor, in words and as JSON.
//!
//! Owns: both. Does not own: when something happens.
//! Invariants: one line an event. Names of devices are strangers' text.

use std::time::Duration;

use govern::{Event, Values, What};
use serde_json::{Value, json};

use crate::{output, units};

/// Says it, in the form that was asked for.
pub(super) fn say(event: &Event, as_json: bool) {
    if as_json {
        output::say(object(event));
    } else {
        output::say(line(event));
    }
}

pub(super) fn line(event: &Event) -> String {
    let device = output::shown(&event.device);
    match &event.what {
        What::Limited { limit_bytes, bytes_per_second, budget_ns, .. } => {
            let (limit, budget) = (units::data(*limit_bytes), units::time(Duration::from_nanos(*budget_ns)));
            let speed = bytes_per_second.map_or_else(
                || "how fast it writes is not known yet".to_owned(),
                |speed| format!("it writes {}", units::rate(speed, Duration::from_secs(1))),
            );
            format!("{device}: at most {limit} may be dirty ({speed}, budget {budget})")
        }
        What::Released => format!("{device}: fast enough, it has the kernel's own limit"),
        What::PutBack => format!("{device}: put back as it was"),
        What::Foreign(values) => format!("{device}: somebody else has set {}: left alone", values_text(*values)),
        What::Alone(why) => format!("{device}: left alone: {why}"),
        What::Gone => format!("{device}: gone"),
        What::Refused(why) => format!("{device}: left alone: {}", output::shown(why)),
    }
}

pub(super) fn values_text(values: Values) -> String {
    let percent = f64::from(values.ratio_ppm) / 1e4;
    format!("strict_limit {} and max_ratio {percent} %", u32::from(values.strict))
}

fn object(event: &Event) -> Value {
    let (name, more) = match &event.what {
        What::Limited { limit_bytes, ratio_ppm, bytes_per_second, budget_ns } => {
            let of = json!({"limit_bytes": limit_bytes, "max_ratio_fine": ratio_ppm, "budget_ns": budget_ns,
                "bytes_per_second": bytes_per_second});
            ("limited", of)
        }
        What::Released => ("released", json!({})),
        What::PutBack => ("put_back", json!({})),
        What::Foreign(values) => {
            ("set_by_others", json!({"strict_limit": u32::from(values.strict), "max_ratio_fine": values.ratio_ppm}))
        }
        What::Alone(why) => ("left_alone", json!({"why": why})),
        What::Gone => ("gone", json!({})),
        What::Refused(why) => ("refused", json!({"why": why})),
    };
    let mut object = json!({"event": name, "device": event.device, "bdi": event.bdi});
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}
