//! Volumes of prefixes with characters that URLs and databases encode.
//!
//! Owns: the prefixes.
//! Does not own: the stores.
//! Invariants: a test sees all objects of a bucket by a connection of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_gateway::{KEY, SECRET};
use afflux_object_store::{AllowedUse, Keys, Options, Store, StoreError, ViewState};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use afflux_object::{ObjectVolume, VolumeLimits, check};

use crate::volume::{Impatient, volume};
use crate::{open, scratch, url, wait};

/// The prefix in an address, and in the names of objects.
const PREFIXES: [(&str, &str); 20] = [
    ("plain", "plain"),
    ("two/parts", "two/parts"),
    ("slash/", "slash"),
    ("~alice/home", "~alice/home"),
    ("ü/日本", "ü/日本"),
    ("b[1]", "b[1]"),
    ("100%25", "100%"),
    ("x%257Ey", "x%7Ey"),
    ("x{y}", "x{y}"),
    ("star*", "star*"),
    ("a%20blank", "a blank"),
    ("a blank in", "a blank in"),
    ("what%3F", "what?"),
    ("number%231", "number#1"),
    ("back\\slash", "back\\slash"),
    ("wal/compacted", "wal/compacted"),
    ("records", "records"),
    ("data/records/manifest", "data/records/manifest"),
    ("gc", "gc"),
    ("quote\"'<>|^`&+=;:,@!$()", "quote\"'<>|^`&+=;:,@!$()"),
];

/// A store with a bucket.
pub(crate) struct Bucket {
    endpoint: String,
    name: String,
    /// The connection of the test.
    all: Arc<dyn ObjectStore>,
}

impl Bucket {
    pub(crate) fn of(endpoint: &str, name: &str) -> Self {
        // Nobody may have opened a store before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = AmazonS3Builder::new().with_endpoint(endpoint).with_allow_http(true).with_bucket_name(name);
        let builder = builder.with_access_key_id(KEY).with_secret_access_key(SECRET).with_disable_bulk_delete(true);
        let all = Arc::new(builder.build().unwrap());
        Self { endpoint: endpoint.to_owned(), name: name.to_owned(), all }
    }

    fn options(&self) -> Options {
        let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
        Options { endpoint: Some(self.endpoint.clone()), keys: Some(keys), told: None }
    }

    fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", self.name)
    }

    fn open(&self, prefix: &str) -> Result<Store, StoreError> {
        wait(Store::open(&self.url(prefix), &self.options()))
    }

    fn open_to_read(&self, prefix: &str) -> Result<Store, StoreError> {
        wait(Store::open_to_read(&self.url(prefix), &self.options()))
    }

    fn run<T>(&self, request: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(request)
    }

    fn names(&self) -> BTreeSet<String> {
        let listed = self.run(self.all.list(None).map_ok(|meta| meta.location.to_string()).try_collect());
        listed.unwrap()
    }

    /// The objects but those of probes, which go later.
    fn names_of_volumes(&self) -> BTreeSet<String> {
        self.names().into_iter().filter(|name| !name.contains("/probe/")).collect()
    }

    fn put(&self, name: &str) {
        self.run(self.all.put(&Path::parse(name).unwrap(), "x".into())).unwrap();
    }

    fn remove(&self, name: &str) {
        self.run(self.all.delete(&Path::parse(name).unwrap())).unwrap();
    }

    fn clear(&self) {
        self.names().iter().for_each(|name| self.remove(name));
    }
}

/// Writes a volume that its writer leaves without an end, and reads it by all interfaces.
fn fill(bucket: &Bucket, prefix: &str, byte: u8) {
    let store = bucket.open(prefix).unwrap();
    assert_eq!(wait(store.access()).unwrap(), AllowedUse::ReadWrite, "{prefix}");
    let volume = volume(&store, u64::from(byte));
    volume.write(1, 0, Bytes::from(vec![byte; 200_000])).unwrap();
    wait(volume.commit(1)).unwrap();
    // Tables, and then a log.
    wait(afflux_object::RecordDatabase::manifest(volume.records())).unwrap();
    volume.write(2, 0, Bytes::from(vec![byte; 3_000])).unwrap();
    wait(volume.commit(2)).unwrap();
    wait(store.make_snapshot("early")).unwrap();
    drop((volume, store));
}

fn holds(bucket: &Bucket, prefix: &str, byte: u8) {
    let reader = bucket.open_to_read(prefix).unwrap();
    let view = wait(reader.view(&ViewState::Fixed)).unwrap();
    let report = wait(check(&reader.objects(), &view, &reader.clock())).unwrap();
    assert!(report.damaged.is_empty(), "{prefix}: {report:?}");
    let clock = Impatient(reader.clock());
    let view = wait(ObjectVolume::open_view(reader.objects(), view, clock, VolumeLimits::default())).unwrap();
    assert_eq!(wait(view.read(1, 199_990, 10)).unwrap(), [byte; 10], "{prefix}");
    assert_eq!(wait(view.read(2, 0, 3_000)).unwrap(), [byte; 3_000], "{prefix}");
    let view = wait(reader.view(&ViewState::Snapshot("early".to_owned()))).unwrap();
    let clock = Impatient(reader.clock());
    let view = wait(ObjectVolume::open_view(reader.objects(), view, clock, VolumeLimits::default())).unwrap();
    assert_eq!(wait(view.read(1, 0, 10)).unwrap(), [byte; 10], "{prefix}");
}

/// Each object of a volume has a name below the volume's prefix.
pub(crate) fn contract(bucket: &Bucket) {
    for (at, (prefix, raw)) in PREFIXES.into_iter().enumerate() {
        let others = bucket.names_of_volumes();
        fill(bucket, prefix, at as u8);
        holds(bucket, prefix, at as u8);
        let made = bucket.names_of_volumes();
        let mut made = made.difference(&others).peekable();
        assert!(made.peek().is_some());
        assert_eq!(made.find(|name| !name.starts_with(&format!("{raw}/"))), None, "{prefix}");
    }
    let listed = wait(Store::volumes(&format!("s3://{}", bucket.name), &bucket.options())).unwrap();
    assert_eq!(listed.len(), PREFIXES.len(), "{listed:?}");
    for address in listed {
        wait(Store::open_to_read(&address, &bucket.options())).unwrap();
    }
    bucket.clear();
    occupied(bucket);
    bucket.clear();
}

/// A volume is made only where nothing is.
fn occupied(bucket: &Bucket) {
    bucket.put("foreign/report.pdf");
    for opened in [bucket.open("foreign"), bucket.open_to_read("foreign")] {
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Occupied { .. }), "{error}");
        assert!(error.to_string().contains("foreign/report.pdf"), "{error}");
    }
    // The probe was no reason, and stays none.
    bucket.remove("foreign/report.pdf");
    bucket.open("foreign").unwrap();
    fill(bucket, "lost", 7);
    let manifests = bucket.names().into_iter().filter(|name| name.starts_with("lost/records/manifest/"));
    manifests.for_each(|name| bucket.remove(&name));
    let left = bucket.names_of_volumes();
    for opened in [bucket.open("lost"), bucket.open_to_read("lost")] {
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Occupied { .. }) && error.to_string().contains("lost/data/"), "{error}");
    }
    assert_eq!(bucket.names_of_volumes(), left, "nothing was made");
    // No list would show a volume inside another.
    fill(bucket, "outer", 8);
    for inner in ["outer/inner", "outer/data/data", "outer/records/x", "outer/a/b"] {
        let error = bucket.open(inner).map(drop).unwrap_err();
        let words = error.to_string();
        assert!(matches!(error, StoreError::Inside { .. }) && words.contains("s3://prefixes/outer;"), "{words}");
        assert!(matches!(bucket.open_to_read(inner), Err(StoreError::NoVolume { .. })), "{inner}");
    }
    bucket.open("outers/inner").unwrap();
    // A volume's name makes no volume of the folders around it.
    fill(bucket, "named/records/manifest", 9);
    assert!(matches!(bucket.open("named"), Err(StoreError::Occupied { .. })));
    bucket.open("named/beside").unwrap();
}

#[test]
fn a_directory_may_have_any_name() {
    let scratch = scratch();
    for (name, written) in [("~a", "~a"), ("ü [1]", "ü [1]"), ("100%", "100%25"), ("a\\b", "a\\b"), ("q?", "q%3F")] {
        let store = open(&format!("{}/{written}", url(&scratch))).unwrap();
        drop(volume(&store, 1));
        assert!(scratch.path().join(name).join("records/manifest").is_dir(), "{name}");
        wait(Store::open_to_read(&format!("{}/{written}", url(&scratch)), &Options::default())).unwrap();
    }
}

#[test]
fn a_directory_with_other_files_is_no_place_for_a_volume() {
    let scratch = scratch();
    std::fs::write(scratch.path().join("thesis.tex"), "x").unwrap();
    let error = open(&url(&scratch)).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Occupied { .. }) && error.to_string().contains("thesis.tex"), "{error}");
}
