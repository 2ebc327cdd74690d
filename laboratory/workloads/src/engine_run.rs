//! Jobs on an engine of any world, such as a real one, with the simulator's operations in the simulator's order.
//!
//! Owns: the files that the jobs share, the count of accepted bytes, the order of starts.
//! Does not own: the engine, its world and its devices (the caller's), a job's work (`runner`).
//! Invariants: the same jobs and seed give the same operations as in a simulation of that seed. Contents are
//! not checked here: each write fills its pages with its own number.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::{Client, DeviceError, Engine, Error, File, Platform};
use afflux_simulator::Random;

use crate::job::Job;
use crate::locking::lock;
use crate::open_tasks::OpenTasks;
use crate::outcome::JobOutcome;
use crate::plan::{Plan, layout, plan};
use crate::runner;
use crate::sequence::Direction;
use crate::simulated::fault;
use crate::site::Site;
use crate::workload::Workload;

/// Opens the file at this path, which has this size; the error is the reason that it cannot.
type Open<'a> = dyn Fn(&str, u64) -> Result<File, String> + Send + Sync + 'a;

struct EngineFile {
    file: File,
    used: AtomicBool,
}

struct EngineSite<P: Platform> {
    engine: Arc<Engine<P>>,
    /// All of them are made before the run.
    files: BTreeMap<String, Arc<EngineFile>>,
    accepted_bytes: AtomicU64,
    writes: AtomicU64,
    stop_ns: AtomicU64,
}

/// Jobs that are ready to run.
pub struct EngineRun<P: Platform> {
    site: Arc<EngineSite<P>>,
    plan: Plan<EngineFile>,
}

/// Observes a run and stops it, from any thread.
pub struct EngineRunHandle<P: Platform> {
    site: Arc<EngineSite<P>>,
}

impl<P: Platform> EngineRun<P> {
    /// Jobs on `engine`, with the operations of a simulation of `seed`. `open` is called once for each path, with the
    /// size that the file must have before the run.
    ///
    /// # Errors
    /// When there are too many clones, a job goes past the cache, or `open` fails.
    pub fn new(engine: &Arc<Engine<P>>, jobs: &[Job], seed: u64, open: &Open<'_>) -> Result<Self, String> {
        if let Some(job) = jobs.iter().find(|job| job.is_direct()) {
            return Err(format!("job '{}' goes past the cache, and there is nothing but a cache here", job.name));
        }
        let workloads: Vec<Workload> = jobs.iter().cloned().map(Workload::Job).collect();
        let seed = Random::new(seed).fork(4);
        let open = |(path, bytes): (String, u64)| {
            let file = EngineFile { file: open(&path, bytes)?, used: AtomicBool::new(false) };
            Ok((path, Arc::new(file)))
        };
        let files = layout(&workloads, &seed, &|_| None)?.into_iter().map(open).collect::<Result<_, String>>()?;
        let site = Arc::new(EngineSite {
            engine: Arc::clone(engine),
            files,
            accepted_bytes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            stop_ns: AtomicU64::new(u64::MAX),
        });
        Ok(Self { plan: plan(&workloads, &*site, &seed)?, site })
    }

    /// A handle that observes and stops the run.
    pub fn handle(&self) -> EngineRunHandle<P> {
        EngineRunHandle { site: Arc::clone(&self.site) }
    }

    /// Runs all jobs to their ends and honours stonewalls. Returns their figures, in the order of the jobs. Nothing is
    /// written out after the last job's end.
    pub async fn run(self) -> Vec<JobOutcome> {
        let left: Arc<Mutex<OpenTasks>> = Arc::default();
        for start in self.plan.starts {
            if start.stonewall {
                all_ended(&left).await;
            }
            for clone in start.clones {
                lock(&left).count += 1;
                let (site, left) = (Arc::clone(&self.site), Arc::clone(&left));
                self.site.engine.platform().spawn("job", async move {
                    runner::run(site, clone).await;
                    OpenTasks::ended(&left);
                });
            }
        }
        all_ended(&left).await;
        self.plan.rows.iter().map(|row| lock(row).outcome()).collect()
    }
}

impl<P: Platform> EngineRunHandle<P> {
    /// Bytes accepted from writers so far.
    pub fn accepted_bytes(&self) -> u64 {
        self.site.accepted_bytes.load(Ordering::Relaxed)
    }

    /// Stops the jobs: they start no more operations, and wait for those already started.
    pub fn stop(&self) {
        self.site.stop_ns.store(0, Ordering::Relaxed);
    }
}

async fn all_ended(left: &Mutex<OpenTasks>) {
    poll_fn(|cx| {
        let mut left = lock(left);
        if left.count == 0 {
            return Poll::Ready(());
        }
        left.waker = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

impl<P: Platform> Site for EngineSite<P> {
    type World = P;
    type File = EngineFile;

    fn world(&self) -> &Arc<P> {
        self.engine.platform()
    }

    fn device_bytes(&self, _: &str) -> Option<u64> {
        None
    }

    fn leave_unchecked(&self, _: &str) {}

    fn leave_holes(&self, _: &str) {
        // The caller's `open` decides that.
    }

    fn lay_out(&self, _: &BTreeMap<String, u64>) -> Result<(), String> {
        Ok(())
    }

    fn file(&self, path: &str, _: u64) -> Result<Arc<EngineFile>, String> {
        self.files.get(path).cloned().ok_or_else(|| format!("'{path}' was not opened"))
    }

    fn device_name(&self, _: &EngineFile) -> String {
        "disk".to_owned()
    }

    fn stop_ns(&self) -> u64 {
        self.stop_ns.load(Ordering::Relaxed)
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn charge_calls(&self, _: u64, _: Direction) {}

    fn charge_ns(&self, _: u64) {}

    fn begin_use(&self, file: &EngineFile) -> bool {
        file.used.swap(true, Ordering::Relaxed)
    }

    async fn forget_clean(&self, file: &EngineFile) {
        let seen = file.file.change_count();
        self.engine.try_invalidate(&file.file, file.file.size(), seen).await;
    }

    async fn read(&self, task: &Client, file: &EngineFile, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.engine.read_for(Some(task), &file.file, offset, buffer).await
    }

    async fn write(&self, task: &Client, file: &EngineFile, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        for page in buffer.chunks_mut(4096) {
            let len = page.len().min(8);
            page[..len].copy_from_slice(&number.to_le_bytes()[..len]);
        }
        self.engine.write_for(Some(task), &file.file, offset, buffer).await?;
        self.accepted_bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn fault(&self, task: &Client, file: &EngineFile, offset: u64) -> Result<(), Error> {
        fault(&self.engine, task, &file.file, offset).await
    }

    async fn direct(&self, _: &Client, _: &EngineFile, _: Direction, _: u64, _: &mut [u8]) -> Result<usize, Error> {
        // Only a simulated machine has a device besides its engine.
        Err(DeviceError::Unsupported.into())
    }

    async fn trim(&self, file: &EngineFile, offset: u64, bytes: u64) -> Result<(), Error> {
        self.engine.punch(&file.file, offset..offset + bytes).await
    }

    fn remove(&self, file: &EngineFile) {
        self.engine.discard(&file.file);
    }

    async fn sync(&self, task: &Client, file: &EngineFile) -> Result<(), Error> {
        self.engine.sync_for(Some(task), &file.file, 0..u64::MAX).await
    }
}
