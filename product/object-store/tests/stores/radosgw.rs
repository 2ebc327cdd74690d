//! The contracts on a Ceph with an S3 gateway, and writers that are killed and frozen there.

use afflux_gateway::{Gateway, KEY, SECRET};
use afflux_object_store::{AllowedUse, Keys, Options, Store, StoreError};
use afflux_scratch::skipped;

use crate::prefixes::{self, Bucket};
use crate::{answers, kills, objects, records, throttled, volume, wait};

const BUCKET: &str = "bucket";
const BYTES: u64 = 2 << 30;

/// Starts a cluster with a bucket, or names what is missing.
fn start() -> Option<Gateway> {
    if let Some(obstacle) = Gateway::obstacle() {
        skipped!("{obstacle}");
        return None;
    }
    let ceph = Gateway::start(BYTES).unwrap();
    ceph.make_bucket(BUCKET, false).unwrap();
    Some(ceph)
}

fn url(name: &str) -> String {
    format!("s3://{BUCKET}/{name}")
}

fn open(ceph: &Gateway, url: &str, secret: &str) -> Result<Store, StoreError> {
    let keys = Keys { id: KEY.to_owned(), secret: secret.to_owned() };
    wait(Store::open(url, &Options { endpoint: Some(ceph.endpoint()), keys: Some(keys), ..Options::default() }))
}

/// Other processes have their keys and the address from variables.
fn variables(endpoint: &str) -> [(&'static str, &str); 3] {
    [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ENDPOINT_URL", endpoint)]
}

// rule: Every store keeps the same contracts.
#[test]
fn a_ceph_keeps_all_contracts() {
    let Some(ceph) = start() else { return };
    let open_at = |name: &str| open(&ceph, &url(name), SECRET).unwrap();
    let store = open_at("objects");
    assert_eq!(wait(store.access()).unwrap(), AllowedUse::ReadWrite);
    objects::contract(&store);
    records::contract(&open_at("records"));
    volume::contract(&open_at("volume"));
    answers::damage(&open_at);
    ceph.make_bucket("prefixes", false).unwrap();
    prefixes::contract(&Bucket::of(&ceph.endpoint(), "prefixes"));
    kills::rounds(&url("kills"), &variables(&ceph.endpoint()), 16);
    throttled::contract(ceph.address(), &url("throttled"));
    let error = open(&ceph, "s3://absent/x", SECRET).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NoBucket { .. }), "{error}");
    let error = open(&ceph, &url("x"), "wrong").map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
}

#[test]
#[ignore = "runs for minutes; AFFLUX_KILL_ROUNDS sets the number of rounds"]
fn a_writer_on_a_ceph_that_is_killed_or_frozen_very_often_loses_no_acknowledged_byte() {
    let Some(ceph) = start() else { return };
    kills::rounds(&url("kills"), &variables(&ceph.endpoint()), kills::wanted(500));
}
