//! Knobs that do not act with the value that they were given, on a running server.
//!
//! Owns: the knobs of NFS, the choice of devices, the words for the log.
//! Does not own: the knobs of the engine and of its policy (`Engine::knobs_in_force`).
//! Invariants: `afflux set`, `afflux stat`, the start and a reload have the same words.

use afflux_engine::settings::{KnobId, KnobTable, TableKnob};
use afflux_engine::{DeviceId, Engine};
use afflux_linux_device::LinuxPlatform;
use afflux_nfs::NfsKnob;
use afflux_report::units;

use crate::control::messages::KnobGauge;
use crate::serve::front::NfsFront;

/// The engine of a server, and its front for NFS if it has one.
pub(crate) type Served<'a> = (&'a Engine<LinuxPlatform>, Option<&'a NfsFront>);

/// The devices on which the knob acts with another value: all devices, or this one. One gauge without a device if it
/// does so on the whole server.
pub(crate) fn of_knob((engine, nfs): Served<'_>, knob: KnobId, device: Option<DeviceId>) -> Vec<KnobGauge> {
    let info = engine.settings().info(knob);
    if let Some(gauge) = of_nfs((engine, nfs), info.name) {
        return vec![gauge];
    }
    let devices = engine.status().devices.into_iter().filter(|it| device.is_none_or(|id| id == it.id));
    let found = devices.flat_map(|it| {
        let knobs = engine.knobs_in_force(it.id).into_iter().filter(|other| other.name == info.name);
        knobs.map(move |knob| KnobGauge::of(knob, Some(it.name.clone())))
    });
    found.collect()
}

/// Notes of the start about knobs of the configuration, each `KNOB=VALUE`.
pub(crate) fn of_configuration(served: Served<'_>, assignments: &[String]) -> Vec<String> {
    let settings = served.0.settings();
    let knobs = assignments.iter().filter_map(|assignment| Some(settings.parse(assignment).ok()?.0));
    let found: Vec<KnobGauge> = knobs.flat_map(|knob| of_knob(served, knob, None)).collect();
    found.iter().map(words).collect()
}

/// The knobs that do not have their defaults, and act on the device with another value.
pub(crate) fn of_device(engine: &Engine<LinuxPlatform>, device: DeviceId) -> Vec<KnobGauge> {
    let settings = engine.settings();
    let own = engine.device_knobs(device);
    let is_set = |name: &str| {
        own.iter().any(|(knob, _)| *knob == name)
            || settings.named(name).is_ok_and(|knob| settings.get(knob) != settings.info(knob).default)
    };
    let found = engine.knobs_in_force(device).into_iter().filter(|knob| is_set(knob.name));
    found.map(|knob| KnobGauge::of(knob, None)).collect()
}

fn of_nfs((engine, nfs): Served<'_>, name: &str) -> Option<KnobGauge> {
    let table: &KnobTable = &afflux_nfs::KNOBS;
    let info = table.rows.iter().find(|row| row.name == name)?;
    let gauge = |value, because: &str| KnobGauge {
        knob: name.to_owned(),
        device: None,
        value,
        unit: info.unit.to_owned(),
        because: because.to_owned(),
    };
    let Some(nfs) = nfs else { return Some(gauge(None, "this server has no NFS")) };
    let asked = engine.settings().get(NfsKnob::PeerConnections);
    let most = nfs.connections_max as u64;
    (name == NfsKnob::PeerConnections.info().name && asked > most)
        .then(|| gauge(Some(most), "the process may have no more connections (its limit of open files)"))
}

/// The line of the log about a knob that acts with another value.
pub(crate) fn words(gauge: &KnobGauge) -> String {
    let whom = gauge.device.as_deref().map(|name| format!(" on {name}")).unwrap_or_default();
    format!("{}{whom}: {}", gauge.knob, gauge.told_with(units::count))
}
