//! The life of an open volume: opening, which is also taking over, a view of another writer's volume, and a clean end.
//!
//! Owns: the volume, its lineage, the times at which a writer may answer.
//! Does not own: fencing itself, which is the opening of the records.
//! Invariants: a writer answers only within [`ANSWER_NS`] after a time at which it was not fenced. A successor answers
//! [`SUCCESSOR_NS`] after its fence, unless the last writer has surely ended. A verifier outlives only a clean end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::TryStreamExt;
use futures_util::future::try_join;
use futures_util::lock::Mutex as TaskMutex;
use futures_util::stream::FuturesUnordered;

use crate::control::{Broken, CheckedRule};
use crate::error::ObjectVolumeError;
use crate::file::{Cut, END, UnnamedContent};
use crate::format::records::{COMPRESSED_RUNS, Lineage, VolumeHeader, decode_cut};
use crate::joints::Joints;
use crate::seams::{Clock, Durability, Objects, RecordChange, RecordDatabase, RecordsError, Value, next_page};
use crate::state::{VolumeLimits, VolumeState};

const ANSWER_NS: u64 = 2_500_000_000;
/// The clocks of two hosts may run apart by a fifth.
const SUCCESSOR_NS: u64 = 3_000_000_000;
/// A writer that answers proves so often that it is not fenced, unless the log has just shown it.
const PROOF_NS: u64 = ANSWER_NS / 4;
/// Files that an end makes durable at a time.
const DRAINED_MAX: usize = 256;
/// Begun cuts that one scan reads.
const CUTS_READ: usize = 1_024;

/// Random values for an opening.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// The header, if the volume is new.
    pub header: VolumeHeader,
    /// The verifier, if the last writer ended otherwise than cleanly.
    pub verifier: u64,
    /// No earlier writer lives: the caller has a lock that each writer holds until its end.
    pub is_alone: bool,
}

/// A writer that has surely ended. Before its end it gave its first answer, so no earlier writer answers either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWriter {
    /// The epoch of its opening.
    pub epoch: u32,
    /// Its write verifier.
    pub verifier: u64,
}

/// A volume open for writing.
#[derive(Debug)]
pub struct ObjectVolume<O, R, C> {
    pub(crate) objects: O,
    pub(crate) records: R,
    pub(crate) clock: C,
    pub(crate) limits: VolumeLimits,
    pub(crate) broken: Broken,
    pub(crate) joints: Arc<Joints>,
    header: VolumeHeader,
    /// The features that the header has in the records.
    features: Mutex<u64>,
    verifier: u64,
    state: Mutex<VolumeState>,
    /// One range at a time is shared.
    pub(crate) sharing: TaskMutex<()>,
    /// A call was answered since the last check of [`Self::keep_answering`].
    is_asked: AtomicBool,
    had_waited: bool,
}

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Opens a volume whose records were just opened, or makes a new one. Earlier writers are fenced already.
    /// It reads and writes all that an opening takes, and then waits until their last answer was given.
    ///
    /// # Errors
    /// If a later writer took over, or the volume is damaged or of a newer format.
    pub async fn open(
        objects: O,
        records: R,
        clock: C,
        limits: VolumeLimits,
        fresh: Fresh,
    ) -> Result<Self, ObjectVolumeError> {
        Self::open_after(objects, records, clock, limits, fresh, |_| None).await
    }

    /// As [`Self::open`]. `ended` names a writer of the volume that has surely ended. If it was the last one, the
    /// opening waits for no answer of it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_after(
        objects: O,
        records: R,
        clock: C,
        limits: VolumeLimits,
        fresh: Fresh,
        ended: impl FnOnce(&VolumeHeader) -> Option<EndedWriter> + Send,
    ) -> Result<Self, ObjectVolumeError> {
        Self::open_broken(objects, records, clock, limits, fresh, Broken::default(), ended).await
    }

    /// Opens a volume that may break a rule, which only tests do.
    pub(crate) async fn open_broken(
        objects: O,
        records: R,
        clock: C,
        limits: VolumeLimits,
        fresh: Fresh,
        broken: Broken,
        ended: impl FnOnce(&VolumeHeader) -> Option<EndedWriter> + Send,
    ) -> Result<Self, ObjectVolumeError> {
        let fenced_at_ns = records.fenced_at_ns().unwrap_or_else(|| clock.now_ns());
        let (header, lineage) = try_join(get(&records, VolumeHeader::KEY), get(&records, Lineage::KEY)).await?;
        let last = lineage.map(|value| Lineage::decode(&value)).transpose()?;
        let kept = last.filter(|last| last.is_clean || broken.is(CheckedRule::NewVerifier));
        let verifier = kept.map_or(fresh.verifier, |last| last.verifier);
        let lineage = Lineage { verifier, is_clean: false };
        let mut batch = vec![RecordChange::Put(Lineage::KEY.to_vec(), lineage.encode())];
        let is_new = header.is_none();
        let (header, features) = match header {
            Some(value) => VolumeHeader::decode(&value)?,
            None => {
                batch.push(RecordChange::Put(VolumeHeader::KEY.to_vec(), fresh.header.encode(0)));
                (fresh.header, 0)
            }
        };
        let is_last = |writer: EndedWriter| {
            writer.epoch.checked_add(1) == Some(records.epoch())
                && last.is_some_and(|last| last.verifier == writer.verifier)
        };
        let had_ended =
            is_new || fresh.is_alone || last.is_some_and(|last| last.is_clean) || ended(&header).is_some_and(is_last);
        records.durable(records.apply(batch)?).await?;
        let state = Mutex::new(VolumeState::new(broken));
        let joints = Arc::default();
        let (sharing, is_asked, had_waited) = (TaskMutex::default(), AtomicBool::new(false), false);
        let mut volume = Self {
            objects,
            records,
            clock,
            limits,
            broken,
            joints,
            header,
            features: Mutex::new(features),
            verifier,
            state,
            sharing,
            is_asked,
            had_waited,
        };
        volume.resume_cuts().await?;
        if !had_ended && !broken.is(CheckedRule::SuccessorWaits) {
            volume.had_waited = true;
            volume.clock.sleep_until_ns(fenced_at_ns.saturating_add(SUCCESSOR_NS)).await;
        }
        Ok(volume)
    }

    /// Opens a view of a volume that is there. It sends no request but GETs.
    ///
    /// # Errors
    /// If there is no volume, or it is damaged or of a newer format.
    pub async fn open_view(objects: O, records: R, clock: C, limits: VolumeLimits) -> Result<Self, ObjectVolumeError> {
        let header = get(&records, VolumeHeader::KEY).await?.ok_or(ObjectVolumeError::NoVolume)?;
        let (header, features) = VolumeHeader::decode(&header)?;
        let lineage = get(&records, Lineage::KEY).await?.ok_or(ObjectVolumeError::NoVolume)?;
        let verifier = Lineage::decode(&lineage)?.verifier;
        let (broken, joints, state) = (Broken::default(), Arc::default(), Mutex::default());
        let (is_asked, had_waited) = (AtomicBool::new(false), false);
        let sharing = TaskMutex::default();
        Ok(Self {
            objects,
            records,
            clock,
            limits,
            broken,
            joints,
            header,
            features: Mutex::new(features),
            verifier,
            state,
            sharing,
            is_asked,
            had_waited,
        })
    }

    /// Forgets the maps of all files, since a view moved on.
    pub fn forget_maps(&self) {
        self.state().forget_all();
    }

    /// Goes on with the cuts that the last writer began.
    async fn resume_cuts(&self) -> Result<(), ObjectVolumeError> {
        let (mut from, end) = (vec![b't'], vec![b't' + 1]);
        while from < end {
            let cuts = self.records.scan_first(from, end.clone(), Durability::Applied, CUTS_READ).await?;
            from = next_page(&cuts, CUTS_READ, &end);
            for (key, value) in cuts.into_iter().filter(|_| !self.broken.is(CheckedRule::ResumeCuts)) {
                let (ino, size) = decode_cut(&key, &value)?;
                let cut = self.state().take(ino, size, END, 0, UnnamedContent::Cut(Cut { size, is_begun: true }));
                let sequence = self.name_all(ino, cut).await?;
                self.records.durable(sequence).await?;
            }
        }
        Ok(())
    }

    /// Records that the volume uses a feature, before the first batch that needs it: a program that lacks the feature
    /// then refuses the volume. Batches become durable in their order.
    pub(crate) fn begin_feature(&self, feature: u64) -> Result<(), RecordsError> {
        let mut features = self.features.lock().unwrap_or_else(PoisonError::into_inner);
        if *features & feature == 0 {
            let header = self.header.encode(*features | feature);
            self.records.apply(vec![RecordChange::Put(VolumeHeader::KEY.to_vec(), header)])?;
            *features |= feature;
        }
        Ok(())
    }

    /// Whether the volume has, or had, compressed bytes.
    pub fn has_compressed_runs(&self) -> bool {
        *self.features.lock().unwrap_or_else(PoisonError::into_inner) & COMPRESSED_RUNS != 0
    }

    /// The identity of the volume and the key of its handles.
    pub fn header(&self) -> &VolumeHeader {
        &self.header
    }

    /// Whether the opening waited until no earlier writer may answer.
    pub fn had_waited(&self) -> bool {
        self.had_waited
    }

    /// The write verifier. It stays the same only if no acknowledged write was lost.
    pub fn verifier(&self) -> u64 {
        self.verifier
    }

    /// Writes all data, and marks the end as clean. No operation is answered afterwards.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn close(&self) -> Result<(), ObjectVolumeError> {
        self.drain().await?;
        // The next reader finds the bytes of small COMMITs side by side, and not in the tree of records.
        let is_worth_a_segment = self.state().inline_bytes >= self.limits.inline_bytes;
        if is_worth_a_segment {
            self.pack().await?;
        }
        self.state().is_closing = true;
        self.drain().await?;
        self.state().is_closed = true;
        let lineage = Lineage { verifier: self.verifier, is_clean: true };
        let sequence = self.records.apply(vec![RecordChange::Put(Lineage::KEY.to_vec(), lineage.encode())])?;
        Ok(self.records.durable(sequence).await?)
    }

    /// Makes all files durable, many at a time: they share the PUTs of the log.
    async fn drain(&self) -> Result<(), ObjectVolumeError> {
        let files: Vec<u64> = self.state().files.keys().copied().collect();
        let mut draining = FuturesUnordered::new();
        for ino in files.into_iter().filter(|_| !self.broken.is(CheckedRule::DrainBeforeClean)) {
            if draining.len() >= DRAINED_MAX {
                draining.try_next().await?;
            }
            draining.push(self.make_durable(ino));
        }
        while draining.try_next().await?.is_some() {}
        Ok(())
    }

    /// The files with writes that are not durable, and their bytes.
    pub fn volatile_bytes(&self) -> BTreeMap<u64, u64> {
        let (state, durable) = (self.state(), self.records.durable_through());
        let volatile = state.files.iter().map(|(ino, file)| (*ino, file.volatile_bytes(durable)));
        volatile.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// The bytes of ended writes that a kill would lose: they are in the store, or in flight with a sync, and no
    /// durable record names them.
    pub fn unsynced_bytes(&self) -> u64 {
        let (state, durable) = (self.state(), self.records.durable_through());
        let is_ended = |write: u64| !state.buffered.contains_key(&write);
        state.files.values().map(|file| file.unsynced_bytes(durable, is_ended)).sum()
    }

    /// Waits until this writer may answer a call.
    ///
    /// # Errors
    /// If a later writer took over, or the volume was closed.
    pub async fn wait_to_answer(&self) -> Result<(), ObjectVolumeError> {
        self.is_asked.store(true, Ordering::Relaxed);
        loop {
            if self.state().is_closed {
                return Err(ObjectVolumeError::Closed);
            }
            let last_ns = self.records.unfenced_at_ns();
            if self.clock.now_ns() < last_ns.saturating_add(ANSWER_NS) || self.broken.is(CheckedRule::AnswerUnfenced) {
                return Ok(());
            }
            self.records.prove().await?;
        }
    }

    /// Proves ahead of the calls that this writer is not fenced, as long as there are calls. So a busy writer's answers
    /// wait for no proof, and an idle writer sends nothing. Exactly one task of a volume runs it.
    ///
    /// # Errors
    /// If a later writer took over, or the volume was closed.
    pub async fn keep_answering(&self) -> Result<(), ObjectVolumeError> {
        while !self.state().is_closed {
            self.clock.sleep_until_ns(self.clock.now_ns().saturating_add(PROOF_NS)).await;
            let is_due = self.clock.now_ns() >= self.records.unfenced_at_ns().saturating_add(PROOF_NS);
            if self.is_asked.swap(false, Ordering::Relaxed) && is_due {
                self.records.prove().await?;
            }
        }
        Err(ObjectVolumeError::Closed)
    }

    /// The records. Batches of names and attributes go through them.
    pub fn records(&self) -> &R {
        &self.records
    }

    pub(crate) fn begin(&self) -> Result<MutexGuard<'_, VolumeState>, ObjectVolumeError> {
        let state = self.state();
        if state.is_closing { Err(ObjectVolumeError::Closed) } else { Ok(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, VolumeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn get<R: RecordDatabase>(records: &R, key: &[u8]) -> Result<Option<Value>, ObjectVolumeError> {
    let mut after = key.to_vec();
    after.push(0);
    let found = records.scan(key.to_vec(), after, Durability::Applied).await?;
    Ok(found.into_iter().next().map(|(_, value)| value))
}
