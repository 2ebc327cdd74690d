//! The contracts on an Azurite, and an Azurite that is away for a while.

use afflux_gateway::{AZURITE_ACCOUNT, AZURITE_KEY, Azurite};
use afflux_object::{Objects, SegmentId, check};
use afflux_object_store::{AllowedUse, Keys, Options, Store, StoreError};
use afflux_scratch::skipped;
use bytes::Bytes;

use crate::{answers, objects, records, volume, wait};

const CONTAINER: &str = "container";

/// Starts one with a container, or names what is missing.
fn start() -> Option<Azurite> {
    if let Some(obstacle) = Azurite::obstacle() {
        skipped!("{obstacle}");
        return None;
    }
    let azurite = Azurite::start().unwrap();
    azurite.make_container(CONTAINER).unwrap();
    Some(azurite)
}

fn open(azurite: &Azurite, url: &str) -> Result<Store, StoreError> {
    let keys = Keys { id: AZURITE_ACCOUNT.to_owned(), secret: AZURITE_KEY.to_owned() };
    wait(Store::open(url, &Options { endpoint: Some(azurite.endpoint()), keys: Some(keys), ..Options::default() }))
}

fn url(name: &str) -> String {
    format!("az://{CONTAINER}/{name}")
}

// rule: Every store keeps the same contracts.
#[test]
fn an_azurite_keeps_all_contracts() {
    let Some(azurite) = start() else { return };
    let open_at = |name: &str| open(&azurite, &url(name)).unwrap();
    let store = open_at("objects");
    assert_eq!(wait(store.access()).unwrap(), AllowedUse::ReadWrite);
    objects::contract(&store);
    records::contract(&open_at("records"));
    volume::contract(&open_at("volume"));
    answers::damage(&open_at);
    let error = open(&azurite, "az://absent/x").map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NoBucket { .. }), "{error}");
}

#[test]
fn a_volume_outlives_a_restart_of_an_azurite() {
    let Some(mut azurite) = start() else { return };
    let bytes = |length| Bytes::from(vec![5; length]);
    let volume = volume::volume(&open(&azurite, &url("away")).unwrap(), 1);
    volume.write(1, 0, bytes(3_000_000)).unwrap();
    volume.write(2, 0, bytes(4_000)).unwrap();
    wait(volume.commit(1)).unwrap();
    wait(volume.commit(2)).unwrap();
    azurite.restart().unwrap();
    // The open volume goes on, and another one finds all of it.
    volume.write(2, 4_000, bytes(100)).unwrap();
    wait(volume.commit(2)).unwrap();
    drop(volume);
    let store = open(&azurite, &url("away")).unwrap();
    let volume = volume::volume(&store, 2);
    for (file, length) in [(1, 3_000_000), (2, 4_100)] {
        assert_eq!(wait(volume.read(file, 0, length)).unwrap(), bytes(length as usize));
    }
    let report = wait(check(&store.objects(), volume.records(), &store.clock())).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(wait(store.objects().list(SegmentId::FOLDER)).unwrap().len() as u64, report.segments);
}
