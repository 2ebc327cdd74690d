//! Faults of the disks under a cache, so that a program can test its answers to them.
//!
//! Owns: the rules, the counts of requests, the requests that hang.
//! Does not own: the requests' usual path (`linux`), the cache's answers to failures (the engine).
//! Invariants: a request is carried out, failed, or held until it is released. No lock is held while one goes on.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::{Device, DeviceError, DeviceReport, Limits, Operation, Request};
use afflux_linux_device::{DeferredWakes, HostDevice};

/// A kind of requests to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestKind {
    /// Reads of pages.
    Read,
    /// Writes of pages.
    Write,
    /// Flushes: the last step of a sync.
    Flush,
    /// Changes of size, holes, reservations of space.
    Shape,
}

impl RequestKind {
    fn of(operation: Operation) -> Self {
        match operation {
            Operation::Read { .. } => Self::Read,
            Operation::Write { .. } => Self::Write,
            Operation::Sync => Self::Flush,
            Operation::SetSize { .. } | Operation::Punch { .. } | Operation::Reserve { .. } => Self::Shape,
        }
    }
}

/// Faults of all disks under a cache, for tests. A clone is the same set; [`Builder::faults`](crate::Builder::faults)
/// gives it to a cache.
///
/// Requests are counted from 1 as the cache makes them. The cache decides when it writes, so the same program may have
/// its requests in another order the next time.
///
/// ```
/// use afflux::{Cache, DeviceError, Faults, RequestKind};
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// let faults = Faults::new();
/// let cache = Cache::builder().memory(16 << 20).faults(&faults).build()?;
/// let file = cache.create(place.path().join("log"))?;
/// file.write_at(b"a record", 0)?;
/// faults.fail(RequestKind::Flush, 0, 1, DeviceError::Io { errno: 5 });
/// assert!(file.sync_data().is_err(), "the disk does not flush, once");
/// file.sync_data()?;
/// assert_eq!(faults.requests(RequestKind::Flush), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    rules: Vec<Rule>,
    counts: [u64; 4],
    hanging: Vec<(Arc<HostDevice>, Request)>,
}

struct Rule {
    /// None: all but reads.
    kind: Option<RequestKind>,
    /// Requests that pass first: of the kind, or writes.
    skip: u64,
    remaining: u64,
    effect: Effect,
}

#[derive(Clone)]
enum Effect {
    Fails(DeviceError),
    Hangs,
    #[cfg(test)]
    Calls(Arc<dyn Fn() + Send + Sync>),
}

impl Faults {
    /// A list without faults: each request succeeds.
    pub fn new() -> Self {
        Self::default()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails `times` requests of a kind, after `skip` further ones. [`u64::MAX`] times is until [`Faults::heal`]. The
    /// disk is not asked.
    pub fn fail(&self, kind: RequestKind, skip: u64, times: u64, error: DeviceError) {
        self.plan().rules.push(Rule { kind: Some(kind), skip, remaining: times, effect: Effect::Fails(error) });
    }

    /// Keeps all requests of a kind, after `skip` further ones, until [`Faults::heal`]: the disk hangs for them.
    pub fn hang(&self, kind: RequestKind, skip: u64) {
        self.plan().rules.push(Rule { kind: Some(kind), skip, remaining: u64::MAX, effect: Effect::Hangs });
    }

    /// Calls `instead` for the next request of a kind, on the thread that makes it. The request is lost.
    #[cfg(test)]
    pub(crate) fn call(&self, kind: RequestKind, instead: impl Fn() + Send + Sync + 'static) {
        self.plan().rules.push(Rule {
            kind: Some(kind),
            skip: 0,
            remaining: 1,
            effect: Effect::Calls(Arc::new(instead)),
        });
    }

    /// Lets `writes` more writes through. From then on nothing but reads is carried out, until [`Faults::heal`]: the
    /// files look as after a kill of the process at that moment. The cache learns that each of these requests is lost.
    pub fn cut_off(&self, writes: u64) {
        let effect = Effect::Fails(DeviceError::Lost);
        self.plan().rules.push(Rule { kind: None, skip: writes, remaining: u64::MAX, effect });
    }

    /// Removes all faults. Requests that hang go on.
    pub fn heal(&self) {
        let _held = DeferredWakes::new();
        let hanging = {
            let mut plan = self.plan();
            plan.rules.clear();
            std::mem::take(&mut plan.hanging)
        };
        hanging.into_iter().for_each(|(device, request)| device.submit(request));
    }

    /// The number of requests of a kind so far, failed and hanging ones included.
    pub fn requests(&self, kind: RequestKind) -> u64 {
        self.plan().counts[kind as usize]
    }

    /// The disk with these faults.
    pub(crate) fn over(&self, device: &Arc<HostDevice>) -> Arc<dyn Device> {
        Arc::new(FaultyDevice { device: Arc::clone(device), faults: self.clone() })
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan();
        f.debug_struct("Faults").field("rules", &plan.rules.len()).field("hanging", &plan.hanging.len()).finish()
    }
}

impl Plan {
    /// Counts a request; returns what happens to it, if it is not carried out.
    fn meets(&mut self, kind: RequestKind) -> Option<Effect> {
        self.counts[kind as usize] += 1;
        let rule = self.rules.iter_mut().find_map(|rule| rule.meets(kind));
        self.rules.retain(|rule| rule.remaining > 0);
        rule
    }
}

impl Rule {
    fn meets(&mut self, kind: RequestKind) -> Option<Effect> {
        let concerns = self.kind.map_or(kind != RequestKind::Read, |own| own == kind);
        if !concerns {
            return None;
        }
        if self.skip > 0 {
            // A cut counts writes only: other requests before it are carried out.
            self.skip -= u64::from(self.kind.is_some() || kind == RequestKind::Write);
            return None;
        }
        self.remaining = if self.remaining == u64::MAX { u64::MAX } else { self.remaining - 1 };
        Some(self.effect.clone())
    }
}

/// A disk with faults.
struct FaultyDevice {
    device: Arc<HostDevice>,
    faults: Faults,
}

impl Device for FaultyDevice {
    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    fn submit(&self, request: Request) {
        let met = self.faults.plan().meets(RequestKind::of(request.operation()));
        match met {
            None => self.device.submit(request),
            Some(Effect::Fails(error)) => request.complete(Err(error)),
            #[cfg(test)]
            Some(Effect::Calls(instead)) => instead(),
            Some(Effect::Hangs) => self.faults.plan().hanging.push((Arc::clone(&self.device), request)),
        }
    }

    fn free_bytes_hint(&self) -> u64 {
        self.device.free_bytes_hint()
    }

    fn too_many(&self) -> u64 {
        self.device.too_many()
    }

    fn report(&self) -> DeviceReport {
        self.device.report()
    }
}
