//! The engine's devices of a volume.
//!
//! Owns: the map from the host's devices to the engine's; the claims: to add one, to tend its unused objects, and to
//! make these clean; for each device the queue of files whose modification time on the host is that of the writeback.
//! Does not own: the making of a device (the world's factory), the thread for that (the tree), its work (the engine),
//! the tasks that set times (`coherence`).
//! Invariants: a device of the host is added once, with the first object on it. The making may wait for the host: no
//! lock but the device's claim is held meanwhile. A making that has begun ends, even without a waiter. An error is not
//! cached. A file is in a queue once. While a device has a queue, one task goes through it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use afflux_engine::{DeviceId, Engine, Platform};
use futures_util::lock::{Mutex as TaskMutex, OwnedMutexGuard};

use crate::error::VolumeError;
use crate::lock::lock;
use crate::objects::inode::Inode;
use crate::objects::inode_state::FileTimeUnit;
use crate::task;
use crate::tree::attributes::DeviceKey;
use crate::tree::directory::{DeviceFactory, Directory, NewDevice, Node};

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
    /// Held while unused objects of it are tended.
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

    /// The unit of times on a device, of which the tree reports `known_ns`.
    pub(crate) fn time_unit(&self, key: DeviceKey, known_ns: u32) -> Arc<FileTimeUnit> {
        let unit = Arc::clone(&self.known(key).time_unit);
        unit.note(known_ns);
        unit
    }

    /// The claim to tend unused objects of a device; none while somebody else has it.
    pub(crate) fn claim_tending(&self, key: DeviceKey) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.known(key).tended).try_lock_owned()
    }

    /// The claim to make unused objects of a device clean; none while somebody else has it.
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

/// Files to be settled. Bounded by the inode table, which holds these inodes and may clean them to free entries.
pub(crate) struct Settling<P: Platform>(Mutex<BTreeMap<DeviceKey, VecDeque<Weak<Inode<P>>>>>);

impl<P: Platform> Default for Settling<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Platform> Settling<P> {
    /// Queues a file whose times must be set, unless it is queued. Returns the device whose task the
    /// caller has to start.
    pub(crate) fn push(&self, inode: &Arc<Inode<P>>) -> Option<DeviceKey> {
        if !inode.state().unsettled || inode.settling.swap(true, Ordering::Relaxed) {
            return None;
        }
        let mut queues = lock(&self.0);
        let has_task = queues.contains_key(&inode.device);
        queues.entry(inode.device).or_default().push_back(Arc::downgrade(inode));
        (!has_task).then_some(inode.device)
    }

    pub(crate) fn len(&self, device: DeviceKey) -> usize {
        lock(&self.0).get(&device).map_or(0, VecDeque::len)
    }

    /// Takes the device's first file out; `None` if it was dropped since, or if the queue is empty.
    pub(crate) fn pop(&self, device: DeviceKey) -> Option<Arc<Inode<P>>> {
        let inode = lock(&self.0).get_mut(&device)?.pop_front()?.upgrade()?;
        inode.settling.store(false, Ordering::Relaxed);
        Some(inode)
    }

    /// Called after a round; returns whether the device has more files. If not, the next caller that queues one starts
    /// a new task.
    pub(crate) fn try_go_on(&self, device: DeviceKey) -> bool {
        let mut queues = lock(&self.0);
        let has_more = queues.get(&device).is_some_and(|queue| !queue.is_empty());
        if !has_more {
            queues.remove(&device);
        }
        has_more
    }
}
