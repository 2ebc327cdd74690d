//! The engine's devices of a volume.
//!
//! Owns: the map from the host's devices to the engine's.
//! Does not own: the making of a device (the world's factory), its work (the engine).
//! Invariants: a device of the host is added once, with the first object on it.

use std::sync::{Arc, Mutex};

use afflux_engine::{DeviceId, Engine, Platform};

use crate::error::VolumeError;
use crate::lock::lock;
use crate::tree::directory::{DeviceFactory, DeviceKey, Node};

pub(crate) struct Devices {
    factory: DeviceFactory,
    met: Mutex<Vec<(DeviceKey, DeviceId)>>,
}

impl Devices {
    pub(crate) fn new(factory: DeviceFactory) -> Self {
        Self { factory, met: Mutex::new(Vec::new()) }
    }

    /// The engine's device for a device of the host, on which `node` is; added on first use.
    pub(crate) fn get_or_add<P: Platform>(
        &self,
        engine: &Arc<Engine<P>>,
        key: DeviceKey,
        node: &Node,
    ) -> Result<DeviceId, VolumeError> {
        let mut met = lock(&self.met);
        if let Some((_, id)) = met.iter().find(|(known, _)| *known == key) {
            return Ok(*id);
        }
        let new = (self.factory)(key, node)?;
        let id = engine.add_known_device(&new.name, new.device, &new.remembered);
        met.push((key, id));
        Ok(id)
    }
}
