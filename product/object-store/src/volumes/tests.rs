use futures_util::FutureExt;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

use super::*;

fn found(objects: &[&str]) -> Vec<String> {
    let store = InMemory::new();
    for object in objects {
        store.put(&Path::parse(object).unwrap(), "".into()).now_or_never().unwrap().unwrap();
    }
    let volumes = search(&store, Path::default()).now_or_never().unwrap().unwrap();
    volumes.iter().map(Path::to_string).collect()
}

#[test]
fn a_prefix_with_any_folder_of_records_is_a_volume() {
    let objects = ["~a/home/records/manifest/1", "plain/records/manifest/1", "plain/records/wal/1"];
    assert_eq!(found(&objects), ["plain", "~a/home"]);
    assert_eq!(found(&["log/records/wal/1", "tables/records/compacted/1", "none/data/00/1"]), ["log", "tables"]);
}

#[test]
fn a_name_that_no_address_may_have_is_no_volume() {
    let deep = |bytes: usize| "x/".repeat(bytes / 2) + "xx";
    assert_eq!(found(&[&format!("{}/records/manifest/1", deep(898))]), [deep(898)]);
    assert_eq!(found(&[&format!("{}/records/manifest/1", deep(900))]), [""; 0]);
}

#[test]
fn a_prefix_may_be_named_as_a_folder_of_a_volume() {
    for prefix in ["records", "records/records", "data/records/manifest", "records/wal", "gc"] {
        assert_eq!(found(&[&format!("{prefix}/records/manifest/1"), &format!("{prefix}/data/00/1")]), [prefix]);
    }
}
