//! The store as all layers see it, with its quirks mended and its requests counted. Data, records, the probe, an
//! opening and a check send their requests here.
//!
//! Owns: the counts, the time of the fence, tags without quotes for stores that want them so, conflicts that are no
//! existing objects, the bound of a list, objects that are read whole.
//! Does not own: retries; the finding of quirks (`probe`); which errors are final (`judge`), who waits (`waits`).
//! Invariants: each call is at most one request that changes something. `AlreadyExists` means that an object was there.
//! Each request is in the list of those that wait until its last byte came. While a probe runs, the records do not
//! change.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use tokio::sync::watch;

use crate::address::{COMPACTIONS, LOG, MANIFESTS, is_in, is_in_records};
use crate::judge::{Judge, Patience, over, said};
use crate::shown::NameAnswer;
use crate::waits::{RequestWaits, Sent, Trouble, WaitKind};

/// The folders of objects that are read whole. None of them begins as a page for people does.
const WHOLE: [&str; 2] = [MANIFESTS, COMPACTIONS];
/// Most memory of a list of names.
const LIST_BYTES_MAX: usize = 512 << 20;

/// Requests that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentRequests {
    /// Objects made or replaced, and parts of them.
    pub puts: u64,
    /// Objects, parts of objects and heads.
    pub gets: u64,
    /// Pages of names, at least.
    pub lists: u64,
    /// Count of objects that were removed.
    pub deletes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
}

/// A store behind the mending.
#[derive(Debug)]
pub(crate) struct Wire {
    inner: Arc<dyn ObjectStore>,
    now_ns: fn() -> u64,
    wants_bare_tags: AtomicBool,
    counters: Arc<Counters>,
    judge: Arc<Judge>,
    /// The time at which the last log object was made, or 0.
    log_made_ns: AtomicU64,
    /// Its id, or 0.
    wal_id: AtomicU64,
    /// Whether the records may change; none while a probe runs.
    may_change: watch::Sender<Option<bool>>,
    /// Whether removals of records still count. The end of a volume waits for none.
    may_remove: watch::Sender<bool>,
}

impl Wire {
    /// A store whose times come from a clock.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, now_ns: fn() -> u64, patience: Patience) -> Self {
        Self {
            inner,
            now_ns,
            wants_bare_tags: AtomicBool::new(false),
            counters: Arc::default(),
            judge: Judge::new(now_ns, patience),
            log_made_ns: AtomicU64::new(0),
            wal_id: AtomicU64::new(0),
            may_change: watch::Sender::new(Some(true)),
            may_remove: watch::Sender::new(true),
        }
    }

    /// Holds the first change of the records until it is known whether they may change.
    pub(crate) fn hold_changes(&self) {
        self.may_change.send_replace(None);
    }

    /// Lets changes of the records go on, or refuses them.
    pub(crate) fn decide_changes(&self, may_change: bool) {
        self.may_change.send_replace(Some(may_change));
    }

    /// Ends all removals of records, also the repeated ones. The next server finds the garbage again.
    pub(crate) fn end_removals(&self) {
        self.may_remove.send_replace(false);
    }

    /// Waits until the records may change.
    async fn wait_until_writable(&self) -> Result<()> {
        if *self.may_change.borrow() == Some(true) {
            return Ok(());
        }
        let decided =
            self.may_change.subscribe().wait_for(Option::is_some).await.is_ok_and(|decided| *decided == Some(true));
        if decided { Ok(()) } else { Err(Error::NotSupported { source: "the store is only read".into() }) }
    }

    /// Sends tags without their quotes from now on.
    pub(crate) fn send_bare_tags(&self) {
        self.wants_bare_tags.store(true, Ordering::Relaxed);
    }

    pub(crate) fn requests(&self) -> SentRequests {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { puts, gets, lists, deletes } = &*self.counters;
        SentRequests { puts: read(puts), gets: read(gets), lists: read(lists), deletes: read(deletes) }
    }

    /// How long failures may last.
    pub(crate) fn patience(&self) -> &Patience {
        &self.judge.patience
    }

    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.judge.waiting.trouble()
    }

    pub(crate) fn waits(&self) -> RequestWaits {
        self.judge.waiting.waits()
    }

    /// For how long the store has been away; 0 while it is there.
    pub(crate) fn away_ns(&self) -> u64 {
        self.judge.waiting.away_ns()
    }

    /// For how long the store has taken no object, though one is sent.
    pub(crate) fn untaken_ns(&self) -> u64 {
        self.judge.waiting.untaken_ns()
    }

    pub(crate) fn refusal(&self) -> Option<Trouble> {
        self.judge.waiting.refusal()
    }

    /// How long ago the store gave its last answer, or the connection was made.
    pub(crate) fn silent_ns(&self) -> u64 {
        self.judge.waiting.silent_ns()
    }

    /// When the answer came to the newest creation in the log. An opening makes one object there: its fence.
    pub(crate) fn log_made_ns(&self) -> u64 {
        self.log_made_ns.load(Ordering::Relaxed)
    }

    /// The id of the newest object in the log. After an opening that is the fence.
    pub(crate) fn wal_id(&self) -> u64 {
        self.wal_id.load(Ordering::Relaxed)
    }

    /// Counts a request, and lists it among those that wait.
    fn send(&self, kind: WaitKind, path: &Path) -> Sent {
        let Counters { puts, gets, lists, deletes } = &*self.counters;
        let counter = match kind {
            WaitKind::Put => puts,
            WaitKind::Get => gets,
            WaitKind::List => lists,
            WaitKind::Delete => deletes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.judge.waiting.begin(kind, path)
    }

    fn mend(&self, tag: &mut Option<String>) {
        if self.wants_bare_tags.load(Ordering::Relaxed)
            && let Some(tag) = tag
        {
            *tag = tag.trim_matches('"').to_owned();
        }
    }

    /// Stores answer two creations that collide with 409, as if an object were there.
    async fn check_absent(&self, location: &Path) -> bool {
        self.counters.gets.fetch_add(1, Ordering::Relaxed);
        matches!(self.inner.head(location).await, Err(Error::NotFound { .. }))
    }

    /// Reads the bytes of an object that never changes. Their number must be the one that the store has shown.
    async fn whole(&self, path: &Path, found: GetResult, is_all: bool) -> Result<GetResult> {
        let (meta, range) = (found.meta.clone(), found.range.clone());
        let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
        let bytes = found.bytes().await?;
        let is_read_whole = WHOLE.iter().any(|folder| is_in(path, folder));
        let is_foreign = is_read_whole && matches!(bytes.first(), None | Some(b'<' | b'{' | 0x1f));
        let answer = if is_foreign { NameAnswer::Wrong } else { NameAnswer::Size(bytes.len() as u64) };
        if is_all && self.judge.is_doubtful(path, answer) {
            return Err(said(format!("{path} came as {} bytes that are not its own", bytes.len())));
        }
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn names(
        &self,
        prefix: Option<&Path>,
        names: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let folder = prefix.cloned().unwrap_or_default();
        let sent = self.send(WaitKind::List, &folder);
        let list = List { judge: Arc::clone(&self.judge), sent, folder, names, bytes: 0 };
        stream::unfold(list, |mut list| async move { Some((list.next().await?, list)) }).boxed()
    }
}

/// A list of names that comes.
struct List {
    judge: Arc<Judge>,
    sent: Sent,
    folder: Path,
    names: BoxStream<'static, Result<ObjectMeta>>,
    bytes: usize,
}

impl List {
    async fn next(&mut self) -> Option<Result<ObjectMeta>> {
        if self.bytes > LIST_BYTES_MAX {
            return None;
        }
        let judge = Arc::clone(&self.judge);
        let item = match judge.timed(async { self.names.next().await.transpose() }).await.transpose() {
            Some(item) => judge.judge(&self.sent, &self.folder, item),
            None => {
                self.judge.waiting.hears();
                self.sent.ends();
                return None;
            }
        };
        if let Ok(meta) = &item {
            self.judge.shown.show(&meta.location, meta.size);
            let tag = meta.e_tag.as_ref().map_or(0, String::len);
            self.bytes += size_of::<ObjectMeta>() + meta.location.as_ref().len() + tag;
        }
        if self.bytes > LIST_BYTES_MAX {
            let most = LIST_BYTES_MAX >> 20;
            return Some(Err(over(format!("the list of {} has more than {most} MiB of names", self.folder))));
        }
        Some(item)
    }
}

/// An upload in parts. Each of them is a request.
#[derive(Debug)]
struct Parts {
    inner: Box<dyn MultipartUpload>,
    judge: Arc<Judge>,
    counters: Arc<Counters>,
    path: Path,
}

impl Parts {
    fn send(&self) -> Sent {
        self.counters.puts.fetch_add(1, Ordering::Relaxed);
        self.judge.waiting.begin(WaitKind::Put, &self.path)
    }
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (sent, judge, path) = (self.send(), Arc::clone(&self.judge), self.path.clone());
        let part = self.inner.put_part(data);
        Box::pin(async move { judge.judge(&sent, &path, part.await) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let sent = self.send();
        let done = self.inner.complete().await;
        self.judge.judge(&sent, &self.path, done)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Wire {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        if is_in_records(location) {
            self.wait_until_writable().await?;
        }
        let sent = self.send(WaitKind::Put, location);
        let is_create = matches!(options.mode, PutMode::Create);
        if let PutMode::Update(version) = &mut options.mode {
            self.mend(&mut version.e_tag);
        }
        let size = payload.content_length() as u64;
        let result = self.judge.timed(self.inner.put_opts(location, payload, options)).await;
        if is_create && result.is_ok() {
            self.judge.shown.show(location, size);
            if is_in(location, LOG) {
                self.log_made_ns.store((self.now_ns)(), Ordering::Relaxed);
                self.wal_id.fetch_max(wal_id_of(location), Ordering::Relaxed);
            }
        }
        let result = match result {
            Err(Error::AlreadyExists { source, .. }) if is_create && self.check_absent(location).await => {
                Err(Error::Generic { store: "afflux", source })
            }
            result => result,
        };
        self.judge.judge(&sent, location, result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let sent = self.send(WaitKind::Put, location);
        let begun = self.judge.timed(self.inner.put_multipart_opts(location, options)).await;
        let inner = self.judge.judge(&sent, location, begun)?;
        let (judge, counters) = (Arc::clone(&self.judge), Arc::clone(&self.counters));
        Ok(Box::new(Parts { inner, judge, counters, path: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        let sent = self.send(WaitKind::Get, location);
        self.mend(&mut options.if_match);
        self.mend(&mut options.if_none_match);
        let (is_head, is_all) = (options.head, options.range.is_none());
        let result = self.judge.timed(self.inner.get_opts(location, options)).await;
        let result = match result {
            Ok(found) if !is_head && (is_all || matches!(found.payload, GetResultPayload::File(..))) => {
                self.whole(location, found, is_all).await
            }
            result => result,
        };
        let mut found = self.judge.judge(&sent, location, result)?;
        if let GetResultPayload::Stream(pieces) = found.payload {
            // The request is under way until its last byte.
            let (judge, path) = (Arc::clone(&self.judge), location.clone());
            let pieces = pieces.map(move |piece| match piece {
                Ok(piece) => {
                    judge.waiting.hears();
                    Ok(piece)
                }
                broken => judge.judge(&sent, &path, broken),
            });
            found.payload = GetResultPayload::Stream(pieces.boxed());
        }
        Ok(found)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, judge, counters) = (Arc::clone(&self.inner), Arc::clone(&self.judge), Arc::clone(&self.counters));
        let may_remove = self.may_remove.subscribe();
        let delete = move |location: Result<Path>| -> BoxFuture<'static, Result<Path>> {
            let (inner, judge, counters) = (Arc::clone(&inner), Arc::clone(&judge), Arc::clone(&counters));
            let may_remove = may_remove.clone();
            Box::pin(async move {
                let location = location?;
                counters.deletes.fetch_add(1, Ordering::Relaxed);
                let sent = judge.waiting.begin(WaitKind::Delete, &location);
                judge.shown.forget(&location);
                let may_end = is_in_records(&location).then_some(may_remove);
                unless_ended(judge.timed(inner.delete(&location)), may_end)
                    .await
                    .map_or_else(|| Err(removals_ended(&location)), |deleted| judge.judge(&sent, &location, deleted))
                    .map(|()| location)
            })
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.names(prefix, self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.names(prefix, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let folder = prefix.cloned().unwrap_or_default();
        let sent = self.send(WaitKind::List, &folder);
        let found = self.judge.timed(self.inner.list_with_delimiter(prefix)).await;
        self.judge.judge(&sent, &folder, found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let sent = self.send(WaitKind::Put, to);
        let copied = self.judge.timed(self.inner.copy_opts(from, to, options)).await;
        self.judge.judge(&sent, to, copied)
    }
}

/// The outcome of a removal; nothing once no removal counts any more.
async fn unless_ended<T>(removal: impl Future<Output = T>, may_end: Option<watch::Receiver<bool>>) -> Option<T> {
    let Some(mut may_remove) = may_end else { return Some(removal.await) };
    let ended = pin!(may_remove.wait_for(|may_remove| !may_remove));
    match select(pin!(removal), ended).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

fn removals_ended(location: &Path) -> Error {
    over(format!("{location} stays, since the volume is closed"))
}

/// The id that an object of the log has for a name, or 0.
fn wal_id_of(location: &Path) -> u64 {
    let name = location.filename().and_then(|name| name.split('.').next());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}
