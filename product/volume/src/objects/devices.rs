//! The engine's devices of a volume.
//!
//! Owns: the map from the host's devices to the engine's; turns: to add one, to look after its unused objects, and to
//! make these clean.
//! Does not own: the making of a device (the world's factory), the thread for that (the tree), its work (the engine).
//! Invariants: a device of the host is added once, with the first object on it. The making may wait for the host: no
//! lock but the device's turn is held meanwhile. A making that has begun ends, even without a waiter. An error is not
//! kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use afflux_engine::{DeviceId, Engine, Platform};
use futures_util::lock::{Mutex as TaskMutex, OwnedMutexGuard};

use crate::error::VolumeError;
use crate::lock::lock;
use crate::objects::time_unit::FileTimeUnit;
use crate::task;
use crate::tree::directory::{DeviceFactory, Directory, NewDevice, Node};
use crate::tree::stat::DeviceKey;

pub(crate) struct TreeDevices {
    factory: Arc<DeviceFactory>,
    known: Mutex<BTreeMap<DeviceKey, Arc<KnownDevice>>>,
}

/// A device of the host.
#[derive(Default)]
struct KnownDevice {
    /// The engine's, once it is added.
    added: OnceLock<DeviceId>,
    /// Held while it is made.
    claim: Arc<TaskMutex<()>>,
    /// Held while unused objects of it are looked after.
    tended: Arc<TaskMutex<()>>,
    /// Held while unused objects of it are made clean.
    cleaned: Arc<TaskMutex<()>>,
    time_unit: Arc<FileTimeUnit>,
}

impl KnownDevice {
    fn add<P: Platform>(&self, engine: &Arc<Engine<P>>, new: NewDevice) -> DeviceId {
        *self.added.get_or_init(|| engine.add_known_device(&new.name, new.device, &new.remembered))
    }
}

impl TreeDevices {
    pub(crate) fn new(factory: DeviceFactory) -> Self {
        Self { factory: Arc::new(factory), known: Mutex::default() }
    }

    fn known(&self, key: DeviceKey) -> Arc<KnownDevice> {
        Arc::clone(lock(&self.known).entry(key).or_default())
    }

    /// The unit of times on a device, of which the tree tells `known_ns`.
    pub(crate) fn time_unit(&self, key: DeviceKey, known_ns: u32) -> Arc<FileTimeUnit> {
        let unit = Arc::clone(&self.known(key).time_unit);
        unit.note(known_ns);
        unit
    }

    /// The turn to look after unused objects of a device; none while somebody else has it.
    pub(crate) fn claim_tending(&self, key: DeviceKey) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.known(key).tended).try_lock_owned()
    }

    /// The turn to make unused objects of a device clean; none while somebody else has it.
    pub(crate) fn claim_cleaning(&self, key: DeviceKey) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.known(key).cleaned).try_lock_owned()
    }

    /// Adds the device of an export, on this thread. The volume serves nothing yet.
    pub(crate) fn add_now<P: Platform>(
        &self,
        engine: &Arc<Engine<P>>,
        key: DeviceKey,
        node: &Node,
    ) -> Result<(), VolumeError> {
        let known = self.known(key);
        if known.added.get().is_none() {
            known.add(engine, (self.factory)(key, node)?);
        }
        Ok(())
    }

    /// The engine's device for a device of the host, on which `node` is; added on first use. `None` if the world
    /// dropped the task that was to add it.
    pub(crate) async fn get_or_add<P: Platform>(
        &self,
        engine: &Arc<Engine<P>>,
        tree: &Arc<dyn Directory>,
        key: DeviceKey,
        node: &Node,
    ) -> Option<Result<DeviceId, VolumeError>> {
        let known = self.known(key);
        if let Some(id) = known.added.get() {
            return Some(Ok(*id));
        }
        let claim = Arc::clone(&known.claim).lock_owned().await;
        if let Some(id) = known.added.get() {
            return Some(Ok(*id));
        }
        let (factory, on) = (Arc::clone(&self.factory), node.clone());
        let making = tree.make_device(node, Box::new(move || factory(key, &on)));
        let for_engine = Arc::clone(engine);
        let work = async move {
            let added = making.await.map(|new| known.add(&for_engine, new));
            drop(claim);
            added
        };
        task::to_the_end(&**engine.platform(), "device", work).await
    }
}
