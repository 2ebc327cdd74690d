//! The devices that a simulation can have: models with their numbers, built in or from a file.
//!
//! A device file is TOML: `about`, `kind`, and the keys of its kind. Each number is on its own line, with its source in
//! the comment behind it. The files in `devices/` are compiled in.
//!
//! Owns: the list of built-in devices, looking up the device that a user named, making a disk from it.
//! Does not own: reading files from the host (the command does), the models (`disk::timing`).
//! Invariants: a disk can be made from every model that parses; every number has a unit and a range.

mod keys;
mod make;
mod parse;

use std::sync::Arc;

pub use crate::document::{InputError, Unit};
pub use keys::{Key, Kind};
pub use parse::{Model, Parameter};

use afflux_engine::settings::did_you_mean;

use crate::disk::{Disk, DiskOptions};
use crate::world::World;

/// The name and file of each built-in device.
const FILES: &[(&str, &str)] = &[
    ("disk", include_str!("../../../../devices/disk.toml")),
    ("disk-82", include_str!("../../../../devices/disk-82.toml")),
    ("lvm-5-disks", include_str!("../../../../devices/lvm-5-disks.toml")),
    ("usb2-disk", include_str!("../../../../devices/usb2-disk.toml")),
    ("usb-stick", include_str!("../../../../devices/usb-stick.toml")),
    ("sd-card", include_str!("../../../../devices/sd-card.toml")),
    ("sata-ssd", include_str!("../../../../devices/sata-ssd.toml")),
    ("nvme-ssd", include_str!("../../../../devices/nvme-ssd.toml")),
    ("smr-disk", include_str!("../../../../devices/smr-disk.toml")),
    ("object-store", include_str!("../../../../devices/object-store.toml")),
    ("throttled", include_str!("../../../../devices/throttled.toml")),
];

/// All built-in devices, in the order in which they are listed.
///
/// # Errors
/// None, unless a file in `devices/` is broken, which a test checks.
pub fn builtin() -> Result<Vec<Model>, InputError> {
    FILES.iter().map(|(name, text)| Model::parse(name, &format!("devices/{name}.toml"), text)).collect()
}

/// The names of all built-in devices, in the same order.
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// A device as the user names it: `NAME` or `FILE`, then `KEY=VALUE` overrides after commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceChoice {
    /// A built-in device's name, or a path.
    pub name: String,
    /// Key and value, in order.
    pub overrides: Vec<(String, String)>,
}

impl DeviceChoice {
    /// Takes `NAME,KEY=VALUE,...` apart.
    ///
    /// # Errors
    /// When an override has no `=`.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default().to_owned();
        let pair = |part: &str| {
            let (key, value) = part.split_once('=').ok_or_else(|| InputError {
                file: text.to_owned(),
                line: 0,
                key: Some(part.to_owned()),
                what: "an override is KEY=VALUE, as rate=25MB".to_owned(),
            })?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(Self { name, overrides: parts.map(pair).collect::<Result<_, _>>()? })
    }

    /// True if it names a built-in device. Otherwise the name is the path of a device file.
    pub fn is_builtin(&self) -> bool {
        FILES.iter().any(|(name, _)| *name == self.name)
    }

    /// The model: a built-in one, or one parsed from `text`, the contents of the named file.
    ///
    /// # Errors
    /// When there is no such device and no text, the text is malformed, or an override is.
    pub fn model(&self, text: Option<&str>) -> Result<Model, InputError> {
        let built_in = FILES.iter().find(|(name, _)| *name == self.name);
        let mut model = match (text, built_in) {
            (Some(text), _) => {
                let stem = self.name.rsplit('/').next().unwrap_or(&self.name);
                Model::parse(stem.strip_suffix(".toml").unwrap_or(stem), &self.name, text)?
            }
            (None, Some((name, text))) => Model::parse(name, &format!("devices/{name}.toml"), text)?,
            (None, None) => {
                let near = did_you_mean(&self.name, names().into_iter());
                let what =
                    format!("no such device{near}; there are {}, or the path of a device file", names().join(", "));
                return Err(InputError { file: self.name.clone(), line: 0, key: None, what });
            }
        };
        for (key, value) in &self.overrides {
            model.set(key, value)?;
        }
        Ok(model)
    }
}

/// Makes a disk of a model. `number` identifies it in the trace.
pub fn make(world: &World, number: u64, model: &Model) -> Arc<Disk> {
    make_with(world, number, model, model.options())
}

/// Like [`make()`], but with other options than the model's own. The model's times and layout stay.
pub fn make_with(world: &World, number: u64, model: &Model, options: DiskOptions) -> Arc<Disk> {
    Disk::with_timing(world, number, options, model.timing(), Some(model.layout()))
}

#[cfg(test)]
mod tests;
