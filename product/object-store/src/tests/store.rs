//! The store of a world, as one process sees it.
//!
//! Owns: the time and the effect of each request.
//! Does not own: objects (the crate's store in memory), fates (`world`).
//! Invariants: an answered request has had its effect. An unanswered one has it once or never.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::world::{Broken, Shared};

/// One answered PUT in so many is forgotten, where a control wants that.
const FORGOTTEN: u64 = 200;

#[derive(Clone)]
pub(super) struct SimStore {
    pub(super) world: Shared,
    pub(super) objects: Arc<InMemory>,
    pub(super) process: u64,
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store of process {}", self.process)
    }
}

impl fmt::Display for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The result of a call of the store in memory, which waits for nothing.
fn now<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("a store in memory answers at once")
}

/// Objects have no time of the host.
fn dateless(mut meta: ObjectMeta) -> ObjectMeta {
    meta.last_modified = DateTime::UNIX_EPOCH;
    meta
}

impl SimStore {
    async fn request<T: Send + 'static>(
        &self,
        kind: &str,
        name: &str,
        act: impl FnOnce(&InMemory) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let result = Arc::new(Mutex::new(None));
        let fate = {
            let mut world = self.world.world();
            let fate = world.request(self.process, kind, name);
            if let Some(effect_ns) = fate.effect_ns {
                let (result, objects) = (Arc::clone(&result), Arc::clone(&self.objects));
                let effect = move || *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(act(&objects));
                world.schedule(effect_ns, effect);
            }
            fate
        };
        tokio::time::sleep(Duration::from_nanos(fate.answer_ns)).await;
        let result = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match result {
            Some(result) if fate.is_answered => result,
            _ => Err(Error::Generic { store: "simulated", source: "no answer".into() }),
        }
    }
}

#[async_trait]
impl ObjectStore for SimStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let is_forgotten = {
            let mut world = self.world.world();
            if world.broken == Some(Broken::CreateOnce) && matches!(options.mode, PutMode::Create) {
                options.mode = PutMode::Overwrite;
            }
            world.broken == Some(Broken::KeepObjects) && world.random.below(FORGOTTEN) == 0
        };
        let at = location.clone();
        let put = move |objects: &InMemory| {
            let put = now(objects.put_opts(&at, payload, options));
            if is_forgotten && put.is_ok() {
                now(objects.delete(&at))?;
            }
            put
        };
        self.request("put", location.as_ref(), put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let at = location.clone();
        let begin = move |objects: &InMemory| now(objects.put_multipart_opts(&at, options));
        self.request("put parts", location.as_ref(), begin).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let at = location.clone();
        let get = move |objects: &InMemory| {
            let mut found = now(objects.get_opts(&at, options))?;
            found.meta = dateless(found.meta);
            Ok(found)
        };
        self.request("get", location.as_ref(), get).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |location: Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                let at = location.clone();
                store.request("delete", location.as_ref(), move |objects| now(objects.delete(&at))).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned());
        let listing = async move {
            let name = prefix.as_ref().map_or_else(String::new, Path::to_string);
            let list = move |objects: &InMemory| now(objects.list(prefix.as_ref()).try_collect::<Vec<_>>());
            let metas = store.request("list", &name, list).await?;
            Ok::<_, Error>(stream::iter(metas.into_iter().map(dateless).map(Ok)))
        };
        stream::once(listing).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (name, prefix) = (prefix.map_or_else(String::new, Path::to_string), prefix.cloned());
        let list = move |objects: &InMemory| now(objects.list_with_delimiter(prefix.as_ref()));
        let mut found = self.request("list", &name, list).await?;
        found.objects = found.objects.into_iter().map(dateless).collect();
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (name, from, to) = (to.to_string(), from.clone(), to.clone());
        self.request("copy", &name, move |objects| now(objects.copy_opts(&from, &to, options))).await
    }
}
