//! One run: writers, readers' checkpoints and faults, by seed.
//!
//! Owns: the operations of writers, their freezing, killing and taking over.
//! Does not own: the checks (`checker`), the store.
//! Invariants: a frozen writer takes no step; its requests on their way take effect.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures_util::future::join_all;

use super::checker::{FILE_BYTES, FILES};
use super::log::Log;
use super::store::{MS, Store};
use crate::control::{Broken, Rule};
use crate::{Checkpoint, Fresh, Limits, ObjectVolume, ObjectVolumeError, Records, SegmentId, VolumeHeader};

const ROUNDS: u64 = 1_600;
const WRITERS_MAX: usize = 5;
const LIMITS: Limits = Limits {
    segment_bytes: 160,
    inline_bytes: 24,
    dead_ns: 2_000 * MS,
    batch_changes: 24,
    window_extents: 4,
    map_extents: 16,
    memory_extents: 32,
};

type Volume = ObjectVolume<Store, Arc<Log>, Store>;
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Writer {
    task: Option<Task>,
    frozen_until_ns: u64,
    shall_end: Arc<AtomicBool>,
}

/// The outcome of a run.
pub(super) struct Outcome {
    pub(super) violations: Vec<String>,
    pub(super) commits: u64,
    pub(super) fences: usize,
    pub(super) end_ns: u64,
    pub(super) log_entries: usize,
}

pub(super) fn run(seed: u64, rule: Option<Rule>) -> Outcome {
    let store = Store::new(seed);
    let mut writers = vec![writer(&store, rule)];
    for _ in 0..ROUNDS {
        if store.world().random.one_in(40) {
            disturb(&store, &mut writers, rule);
        }
        step(&store, &mut writers);
        if !store.world().advance() || !store.world().checker.violations.is_empty() {
            break;
        }
    }
    drop(writers);
    if store.world().checker.violations.is_empty() {
        settle(&store);
    }
    let mut world = store.world();
    Outcome {
        violations: std::mem::take(&mut world.checker.violations),
        commits: world.checker.commits,
        fences: world.log.iter().filter(|entry| entry.last.is_none()).count(),
        end_ns: world.now_ns,
        log_entries: world.log.len(),
    }
}

fn step(store: &Store, writers: &mut [Writer]) {
    let first = store.world().random.below(writers.len() as u64) as usize;
    writers.rotate_left(first);
    let now_ns = store.world().now_ns;
    for writer in writers.iter_mut().filter(|writer| writer.frozen_until_ns <= now_ns) {
        let mut context = Context::from_waker(Waker::noop());
        if writer.task.as_mut().is_some_and(|task| task.as_mut().poll(&mut context).is_ready()) {
            writer.task = None;
        }
    }
}

fn disturb(store: &Store, writers: &mut Vec<Writer>, rule: Option<Rule>) {
    let mut world = store.world();
    let now_ns = world.now_ns;
    let kind = world.random.below(12);
    let chosen = world.random.below(writers.len() as u64) as usize;
    match kind {
        0..3 if writers.len() < WRITERS_MAX => {
            drop(world);
            writers.push(writer(store, rule));
        }
        3..6 => writers[chosen].frozen_until_ns = now_ns + world.random.below(40_000 * MS),
        6 => writers[chosen].task = None,
        7 => writers[chosen].shall_end.store(true, Ordering::Relaxed),
        8 => world.outage_until_ns = now_ns + world.random.below(10_000 * MS),
        9 | 10 => {
            let (id, manifest) = (world.manifest, world.manifest);
            world.manifest += 1;
            world.checkpoints.insert(id, Checkpoint { manifest });
            let named = world.checker.named();
            world.checker.views.insert(id, named);
        }
        _ => {
            if let Some((id, _)) = world.checkpoints.pop_first() {
                world.manifest += 1;
                world.checker.views.remove(&id);
            }
        }
    }
}

fn writer(store: &Store, rule: Option<Rule>) -> Writer {
    let shall_end = Arc::new(AtomicBool::new(false));
    let task = Box::pin(life(store.clone(), rule, Arc::clone(&shall_end)));
    Writer { task: Some(task), frozen_until_ns: 0, shall_end }
}

async fn life(store: Store, rule: Option<Rule>, shall_end: Arc<AtomicBool>) {
    let Ok(volume) = open(&store, rule).await else { return };
    let clients =
        (0..3).map(|_| Box::pin(client(&store, &volume, &shall_end)) as Pin<Box<dyn Future<Output = _> + Send>>);
    let collector = Box::pin(collector(&store, &volume)) as Pin<Box<dyn Future<Output = _> + Send>>;
    let ends: Vec<Result<(), ObjectVolumeError>> = join_all(clients.chain([collector])).await;
    for end in ends {
        match end {
            Ok(()) | Err(ObjectVolumeError::Records(_) | ObjectVolumeError::Closed) => (),
            Err(error) => store.world().violation(format!("an operation failed: {error}")),
        }
    }
}

async fn open(store: &Store, rule: Option<Rule>) -> Result<Volume, ObjectVolumeError> {
    let log = Log::open(store.clone()).await?;
    let epoch = log.epoch();
    let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
    let fresh = Fresh { header, verifier: store.world().random.next() };
    let broken = Broken { rule };
    let volume = ObjectVolume::open_broken(store.clone(), log, store.clone(), LIMITS, fresh, broken).await?;
    store.world().checker.opened(epoch, volume.verifier());
    Ok(volume)
}

async fn client(store: &Store, volume: &Volume, shall_end: &AtomicBool) -> Result<(), ObjectVolumeError> {
    loop {
        if shall_end.load(Ordering::Relaxed) {
            return volume.close().await;
        }
        operation(store, volume).await?;
        let pause_ns = store.world().random.below(200 * MS);
        store.sleep_ns(pause_ns).await;
    }
}

async fn operation(store: &Store, volume: &Volume) -> Result<(), ObjectVolumeError> {
    let epoch = volume.records.epoch();
    let (ino, kind) = {
        let random = &mut store.world().random;
        (1 + random.below(FILES), random.below(20))
    };
    match kind {
        0..9 => change(store, volume, ino, kind == 0)?,
        9 | 10 => volume.flush().await?,
        11..16 => {
            let state = store.world().checker.state_now(epoch, ino);
            volume.commit(ino).await?;
            let mut world = store.world();
            let world = &mut *world;
            world.checker.committed(epoch, ino, state, &world.objects);
        }
        _ => {
            let state = store.world().checker.state_now(epoch, ino);
            let bytes = volume.read(ino, 0, FILE_BYTES).await?;
            store.world().checker.read(epoch, ino, state, &bytes);
        }
    }
    Ok(())
}

fn change(store: &Store, volume: &Volume, ino: u64, is_hole: bool) -> Result<(), ObjectVolumeError> {
    let (start, bytes) = {
        let random = &mut store.world().random;
        let start = random.below(FILE_BYTES - 1);
        let length = 1 + random.below((FILE_BYTES - start).min(100));
        let byte = if is_hole { 0 } else { random.next() as u8 };
        (start, vec![byte; length as usize])
    };
    if is_hole {
        volume.punch(ino, start, bytes.len() as u64)?;
    } else {
        volume.write(ino, start, Bytes::from(bytes.clone()))?;
    }
    store.world().checker.wrote(volume.records.epoch(), ino, start, &bytes);
    Ok(())
}

async fn collector(store: &Store, volume: &Volume) -> Result<(), ObjectVolumeError> {
    loop {
        let pause_ns = store.world().random.below(1_500 * MS);
        store.sleep_ns(pause_ns).await;
        volume.mark_dead().await?;
        volume.delete_dead().await?;
        if store.world().random.one_in(2) {
            volume.sweep_orphans().await?;
        }
    }
}

/// Without faults, a last writer finds the durable bytes and leaves no garbage.
fn settle(store: &Store) {
    {
        let mut world = store.world();
        while world.advance() {}
        world.is_calm = true;
        world.checkpoints.clear();
        world.checker.views.clear();
    }
    let of_end = store.clone();
    let end = async move {
        if let Err(error) = last_writer(&of_end).await {
            of_end.world().violation(format!("the last writer failed: {error}"));
        }
    };
    let mut writers =
        [Writer { task: Some(Box::pin(end)), frozen_until_ns: 0, shall_end: Arc::new(AtomicBool::new(false)) }];
    while writers[0].task.is_some() {
        step(store, &mut writers);
        store.world().advance();
    }
    let mut world = store.world();
    let named = world.checker.named();
    let kept: Vec<String> = world.objects.keys().cloned().collect();
    let mut expected: Vec<String> = named.into_iter().map(SegmentId::name).collect();
    expected.sort();
    if kept != expected && world.checker.violations.is_empty() {
        world.violation(format!("garbage stays: {kept:?} instead of {expected:?}"));
    }
}

async fn last_writer(store: &Store) -> Result<(), ObjectVolumeError> {
    let volume = open(store, None).await?;
    let epoch = volume.records.epoch();
    for ino in 1..=FILES {
        let bytes = volume.read(ino, 0, FILE_BYTES).await?;
        store.world().checker.read(epoch, ino, 0, &bytes);
    }
    volume.sweep_orphans().await?;
    volume.mark_dead().await?;
    store.sleep_ns(2 * LIMITS.dead_ns).await;
    volume.delete_dead().await?;
    store.sleep_ns(2 * LIMITS.dead_ns).await;
    volume.delete_dead().await?;
    volume.close().await
}
