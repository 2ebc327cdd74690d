//! The engine's devices of a volume.
//!
//! Owns: which device of the host is which of the engine's.
//! Does not own: how a device is made (the world's factory), what it does (the engine).
//! Invariants: a device of the host is made once, when an object on it is met first.

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

    /// The engine's device for a device of the host, on which `node` is; made when it is met first.
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
