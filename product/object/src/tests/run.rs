//! One run: writers, readers' checkpoints and faults, by seed.
//!
//! Owns: the operations of writers, their freezing, killing and taking over.
//! Does not own: the checks (`checker`), the store.
//! Invariants: a frozen writer takes no step; its requests in flight take effect.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};

use super::checker::{BATCH_CHANGES, DEAD_NS, Edit, FILE_BYTES, FILES};
use super::log::Log;
use super::store::{MS, Store};
use crate::control::{Broken, CheckedRule};
use crate::format::records::file_key;
use crate::{
    Checkpoint, Compression, Durability, EndedWriter, Fresh, ObjectVolume, ObjectVolumeError, RecordChange,
    RecordDatabase, SegmentId, VolumeHeader, VolumeLimits,
};

const ROUNDS: u64 = 2_000;
const WRITERS_MAX: usize = 5;
pub(super) const LIMITS: VolumeLimits = VolumeLimits {
    segment_bytes: 160,
    inline_bytes: 24,
    dead_ns: DEAD_NS,
    batch_changes: BATCH_CHANGES,
    window_extents: 6,
    map_extents: 16,
    memory_extents: 32,
    shared_bytes: 5_000,
    compression: Compression::None,
};

pub(super) type Volume = ObjectVolume<Store, Arc<Log>, Store>;
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

pub(super) fn run(seed: u64, rule: Option<CheckedRule>) -> Outcome {
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

fn disturb(store: &Store, writers: &mut Vec<Writer>, rule: Option<CheckedRule>) {
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

fn writer(store: &Store, rule: Option<CheckedRule>) -> Writer {
    let shall_end = Arc::new(AtomicBool::new(false));
    let task = Box::pin(life(store.clone(), rule, Arc::clone(&shall_end)));
    Writer { task: Some(task), frozen_until_ns: 0, shall_end }
}

async fn life(store: Store, rule: Option<CheckedRule>, shall_end: Arc<AtomicBool>) {
    let Ok(volume) = open(&store, rule).await else { return };
    let clients =
        (0..3).map(|_| Box::pin(client(&store, &volume, &shall_end)) as Pin<Box<dyn Future<Output = _> + Send>>);
    if reap_all(&volume).await.is_err() {
        return;
    }
    let collector = Box::pin(collector(&store, &volume)) as Pin<Box<dyn Future<Output = _> + Send>>;
    let ends: Vec<Result<(), ObjectVolumeError>> = join_all(clients.chain([collector])).await;
    for end in ends {
        match end {
            Ok(()) | Err(ObjectVolumeError::Records(_) | ObjectVolumeError::Closed) => (),
            Err(error) => store.world().violation(format!("an operation failed: {error}")),
        }
    }
}

pub(super) async fn open(store: &Store, rule: Option<CheckedRule>) -> Result<Volume, ObjectVolumeError> {
    open_beside(store, rule, false).await
}

/// With `is_alone`, a lock shows that no earlier writer lives.
pub(super) async fn open_beside(
    store: &Store,
    rule: Option<CheckedRule>,
    is_alone: bool,
) -> Result<Volume, ObjectVolumeError> {
    open_after(store, rule, is_alone, None).await
}

/// Knows a writer that ended, if any.
pub(super) async fn open_after(
    store: &Store,
    rule: Option<CheckedRule>,
    is_alone: bool,
    ended: Option<EndedWriter>,
) -> Result<Volume, ObjectVolumeError> {
    let log = Log::open(store.clone()).await?;
    let epoch = log.epoch();
    let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
    let fresh = Fresh { header, verifier: store.world().random.next(), is_alone };
    let broken = Broken { rule };
    let limits = VolumeLimits { compression: store.world().compression, ..LIMITS };
    let volume = ObjectVolume::open_broken(store.clone(), log, store.clone(), limits, fresh, broken, |_| ended).await?;
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
        (1 + random.below(FILES), random.below(44))
    };
    let state = store.world().checker.state_now(epoch, ino);
    match kind {
        0..18 => change(store, volume, ino)?,
        18..22 => volume.flush().await?,
        22..31 => {
            volume.commit(ino).await?;
            let mut world = store.world();
            let world = &mut *world;
            world.checker.committed(epoch, ino, state, &world.objects);
        }
        35 => volume.pack().await?,
        36 => scatter_and_cut(store, volume, ino).await?,
        31 => short_life(store, volume).await?,
        40..44 => share(store, volume, ino).await?,
        32..35 => {
            let body = volume.body(ino).await?;
            store.world().checker.body_read(epoch, ino, state, body);
        }
        _ => {
            let bytes = volume.read(ino, 0, FILE_BYTES).await?;
            store.world().checker.read(epoch, ino, state, &bytes);
        }
    }
    Ok(())
}

fn change(store: &Store, volume: &Volume, ino: u64) -> Result<(), ObjectVolumeError> {
    let edit = {
        let random = &mut store.world().random;
        let start = random.below(FILE_BYTES - 1);
        let most = if random.one_in(8) { 100 } else { 6 };
        let length = 1 + random.below((FILE_BYTES - start).min(most));
        let (from, to) = (start as usize, (start + length) as usize);
        match random.below(20) {
            0 | 1 => Edit::Size(from),
            2 | 3 => Edit::Write { start: from, end: to, byte: None },
            _ => Edit::Write { start: from, end: to, byte: Some(random.next() as u8) },
        }
    };
    make(store, volume, ino, edit)
}

fn make(store: &Store, volume: &Volume, ino: u64, edit: Edit) -> Result<(), ObjectVolumeError> {
    match edit {
        Edit::Size(size) => volume.set_size(ino, size as u64)?,
        Edit::Write { start, end, byte: None } => volume.punch(ino, start as u64, (end - start) as u64)?,
        Edit::Write { start, end, byte: Some(byte) } => {
            volume.write(ino, start as u64, Bytes::from(vec![byte; end - start]))?;
        }
        Edit::Share { .. } => unreachable!("the part that a volume took is noted"),
    }
    store.world().checker.edited(volume.records.epoch(), ino, edit);
    Ok(())
}

/// Gives `target` a range of a random file, which may be `target` itself.
async fn share(store: &Store, volume: &Volume, target: u64) -> Result<(), ObjectVolumeError> {
    let (source, mut at, end, mut to) = {
        let random = &mut store.world().random;
        let len = 1 + random.below(FILE_BYTES / 2);
        let (source, from, to) =
            (1 + random.below(FILES), random.below(FILE_BYTES - len), random.below(FILE_BYTES - len));
        (source, from, from + len, to)
    };
    if source == target && at.abs_diff(to) < end - at {
        return Ok(());
    }
    let epoch = volume.records.epoch();
    let _alone = volume.sharing.lock().await;
    while at < end {
        let next = volume.share_part(source, at..end, target, to).await?;
        // The part was taken just now.
        store.world().checker.shared(epoch, (source, at as usize..next as usize), (target, to as usize));
        let gives_up = source != target && store.world().random.one_in(2);
        if gives_up {
            // Its segments have no other name for a while.
            make(store, volume, source, Edit::Size(0))?;
            volume.commit(source).await?;
        }
        volume.commit(target).await?;
        (at, to) = (next, to + (next - at));
    }
    Ok(())
}

/// Many extents, and a cut that takes several batches.
async fn scatter_and_cut(store: &Store, volume: &Volume, ino: u64) -> Result<(), ObjectVolumeError> {
    for at in 0..30 {
        let byte = Some(store.world().random.next() as u8);
        make(store, volume, ino, Edit::Write { start: at * 8, end: at * 8 + 1, byte })?;
    }
    volume.commit(ino).await?;
    make(store, volume, ino, Edit::Size(3))?;
    make(store, volume, ino, Edit::Size(250))?;
    volume.commit(ino).await
}

/// A file that only this client uses is made and removed.
async fn short_life(store: &Store, volume: &Volume) -> Result<(), ObjectVolumeError> {
    let ino = {
        let mut world = store.world();
        world.short_lives += 1;
        FILES + world.short_lives
    };
    let below = |bound| store.world().random.below(bound);
    for _ in 0..below(4) {
        for _ in 0..8 {
            volume.write(ino, 2 * below(FILE_BYTES / 2), Bytes::from(vec![1; 1 + below(4) as usize]))?;
        }
        let (is_flushed, is_committed) = (below(2) == 0, below(2) == 0);
        if is_flushed {
            volume.flush().await?;
        }
        if is_committed {
            volume.commit(ino).await?;
        }
    }
    let nameless = RecordChange::Put(file_key(b'o', ino), vec![0; 8]);
    let sequence = volume.records().apply(vec![nameless])?;
    volume.records().durable(sequence).await?;
    volume.reap(ino).await
}

/// Goes on with the removals that the last writer began.
async fn reap_all(volume: &Volume) -> Result<(), ObjectVolumeError> {
    for (key, _) in volume.records().scan(vec![b'o'], vec![b'o' + 1], Durability::Applied).await? {
        volume.reap(u64::from_be_bytes(key[1..].try_into().unwrap())).await?;
    }
    Ok(())
}

async fn collector(store: &Store, volume: &Volume) -> Result<(), ObjectVolumeError> {
    loop {
        let pause_ns = store.world().random.below(1_500 * MS);
        store.sleep_ns(pause_ns).await;
        volume.mark_dead().await?;
        volume.delete_dead().await?;
        let kind = store.world().random.below(4);
        match kind {
            0 | 1 => drop(volume.sweep_orphans().await?),
            2 => drop(volume.compact().await?),
            _ => (),
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
    let short_lives = store.world().short_lives;
    for ino in FILES + 1..=FILES + short_lives {
        volume.reap(ino).await?;
    }
    let failures = Mutex::new(Vec::new());
    let upkeep = pin!(volume.upkeep(|error| failures.lock().unwrap().push(error.clone())));
    let hour = pin!(store.sleep_ns(3_600_000 * MS));
    if let Either::Left((end, _)) = select(upkeep, hour).await {
        end?;
    }
    failures.lock().unwrap().drain(..).try_for_each(Err)?;
    volume.close().await
}
