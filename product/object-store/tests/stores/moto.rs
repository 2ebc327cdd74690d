//! The contracts on a moto.

use afflux_gateway::{KEY, Moto, SECRET};
use afflux_object_store::{AllowedUse, Keys, Options, Store};
use afflux_scratch::skipped;

use crate::prefixes::{self, Bucket};
use crate::{objects, records, throttled, volume, wait};

const BUCKET: &str = "bucket";

/// Starts one with a bucket, or names what is missing.
pub(crate) fn start() -> Option<Moto> {
    if let Some(obstacle) = Moto::obstacle() {
        skipped!("{obstacle}");
        return None;
    }
    let moto = Moto::start().unwrap();
    moto.make_bucket(BUCKET).unwrap();
    Some(moto)
}

// rule: Every store keeps the same contracts.
#[test]
fn a_moto_keeps_all_contracts() {
    let Some(moto) = start() else { return };
    let open = |name: &str| {
        let keys = Keys { id: KEY.to_owned(), secret: SECRET.to_owned() };
        let options =
            Options { endpoint: Some(format!("http://{}", moto.address())), keys: Some(keys), ..Options::default() };
        wait(Store::open(&format!("s3://{BUCKET}/{name}"), &options)).unwrap()
    };
    let store = open("objects");
    assert_eq!(wait(store.access()).unwrap(), AllowedUse::ReadWrite);
    // A moto looks up a name and stores the object later. Beside other programs, two creations at once may both win.
    objects::contract_without_races(&store);
    records::contract(&open("records"));
    volume::contract(&open("volume"));
}

// rule: Requests that a store under load refuses are repeated, and fail no call.
#[test]
fn a_moto_that_refuses_a_third_of_all_requests_loses_no_acknowledged_byte() {
    let Some(moto) = start() else { return };
    throttled::contract(moto.address(), &format!("s3://{BUCKET}/throttled"));
}

// rule: Each object of a volume has a name below the volume's prefix.
#[test]
fn a_moto_has_each_object_of_a_volume_below_its_prefix() {
    let Some(moto) = start() else { return };
    moto.make_bucket("prefixes").unwrap();
    prefixes::contract(&Bucket::of(&format!("http://{}", moto.address()), "prefixes"));
}
