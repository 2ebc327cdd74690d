//! The store as both adapters see it, with its quirks mended and its requests counted.
//!
//! Owns: the counts, the trouble of the moment, the time of the fence, tags without quotes for stores that want them so, conflicts that are no
//! existing objects.
//! Does not own: retries; the finding of quirks (`probe`).
//! Invariants: each call is at most one request that changes something. `AlreadyExists` means that an object was there.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::failure::Failure;

/// The folder of the log of records.
const LOG: &str = "wal";

/// Requests that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Objects made or replaced, and parts of them.
    pub puts: u64,
    /// Objects, parts of objects and heads.
    pub gets: u64,
    /// Pages of names, at least.
    pub lists: u64,
    /// Objects removed.
    pub deletes: u64,
}

/// A failure that the layers above repeat until it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// When it began, by the volume's clock.
    pub since_ns: u64,
    /// The store's words about the last failure.
    pub why: String,
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
    trouble: Mutex<Option<Trouble>>,
    /// The time of the last answer.
    answered_ns: AtomicU64,
    /// The time at which the last log object was made, or 0.
    log_made_ns: AtomicU64,
    /// Its number, or 0.
    log_number: AtomicU64,
}

impl Wire {
    /// A store whose times come from a clock.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, now_ns: fn() -> u64) -> Self {
        Self {
            inner,
            now_ns,
            wants_bare_tags: AtomicBool::new(false),
            counters: Arc::default(),
            trouble: Mutex::new(None),
            answered_ns: AtomicU64::new(now_ns()),
            log_made_ns: AtomicU64::new(0),
            log_number: AtomicU64::new(0),
        }
    }

    /// Sends tags without their quotes from now on.
    pub(crate) fn send_bare_tags(&self) {
        self.wants_bare_tags.store(true, Ordering::Relaxed);
    }

    pub(crate) fn requests(&self) -> Requests {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { puts, gets, lists, deletes } = &*self.counters;
        Requests { puts: read(puts), gets: read(gets), lists: read(lists), deletes: read(deletes) }
    }

    /// The failure of the last request, unless it succeeded or brought a final answer.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long ago the store gave its last answer, or the connection was made.
    pub(crate) fn silent_ns(&self) -> u64 {
        (self.now_ns)().saturating_sub(self.answered_ns.load(Ordering::Relaxed))
    }

    /// When the answer came to the newest creation in the log. An opening makes one object there: its fence.
    pub(crate) fn log_made_ns(&self) -> u64 {
        self.log_made_ns.load(Ordering::Relaxed)
    }

    /// The number of the newest object in the log. After an opening that is the fence.
    pub(crate) fn log_number(&self) -> u64 {
        self.log_number.load(Ordering::Relaxed)
    }

    fn note<T>(&self, result: Result<T>) -> Result<T> {
        let why = match result.as_ref().map_err(Failure::of) {
            Err(Failure::Busy(why) | Failure::Unknown(why) | Failure::Denied(why)) => Some(why),
            _ => None,
        };
        if why.is_none() {
            self.answered_ns.store((self.now_ns)(), Ordering::Relaxed);
        }
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = why
            .map(|why| Trouble { since_ns: trouble.as_ref().map_or_else(self.now_ns, |before| before.since_ns), why });
        result
    }

    fn mend(&self, tag: &mut Option<String>) {
        if self.wants_bare_tags.load(Ordering::Relaxed)
            && let Some(tag) = tag
        {
            *tag = tag.trim_matches('"').to_owned();
        }
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
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
        Self::count(&self.counters.puts);
        let is_create = matches!(options.mode, PutMode::Create);
        if let PutMode::Update(version) = &mut options.mode {
            self.mend(&mut version.e_tag);
        }
        let result = self.inner.put_opts(location, payload, options).await;
        if is_create && result.is_ok() && location.parts().any(|part| part.as_ref() == LOG) {
            self.log_made_ns.store((self.now_ns)(), Ordering::Relaxed);
            self.log_number.fetch_max(number(location), Ordering::Relaxed);
        }
        let is_answer = matches!(result, Err(Error::AlreadyExists { .. } | Error::Precondition { .. }));
        match result {
            Err(Error::AlreadyExists { source, .. }) if is_create && self.is_absent(location).await => {
                self.note(Err(Error::Generic { store: "afflux", source }))
            }
            result if is_answer => result,
            result => self.note(result),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Self::count(&self.counters.puts);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        Self::count(&self.counters.gets);
        self.mend(&mut options.if_match);
        self.mend(&mut options.if_none_match);
        let result = self.inner.get_opts(location, options).await;
        if matches!(result, Err(Error::NotModified { .. })) { result } else { self.note(result) }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counters = Arc::clone(&self.counters);
        let locations = locations.inspect(move |_| Self::count(&counters.deletes));
        self.inner.delete_stream(locations.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        Self::count(&self.counters.lists);
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        Self::count(&self.counters.lists);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Self::count(&self.counters.lists);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        Self::count(&self.counters.puts);
        self.inner.copy_opts(from, to, options).await
    }
}

/// The number that an object of the log has for a name, or 0.
fn number(location: &Path) -> u64 {
    let name = location.filename().and_then(|name| name.split('.').next());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

impl Wire {
    /// Stores answer two creations that collide with 409, which looks as if an object were there.
    async fn is_absent(&self, location: &Path) -> bool {
        Self::count(&self.counters.gets);
        matches!(self.inner.head(location).await, Err(Error::NotFound { .. }))
    }
}
