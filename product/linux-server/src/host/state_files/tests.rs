use std::os::unix::fs::PermissionsExt;

use afflux_volume::VolumeError;

use super::*;
use afflux_scratch::TestDirectory as Scratch;

fn done(work: TreeResult<'_, ()>) -> Result<(), VolumeError> {
    let reactors = afflux_linux_device::Reactors::start(1, afflux_linux_device::IoChoice::Auto).unwrap();
    reactors.platform().block_on(work)
}

#[test]
fn what_is_added_and_replaced_is_there_for_the_next() {
    let scratch = Scratch::new();
    let path = scratch.path().join("places");
    let (record, store) = open_location_file(&path).unwrap();
    assert!(record.is_empty());
    done(store.append(Bytes::from_static(b"one "))).unwrap();
    done(store.append(Bytes::from_static(b"two"))).unwrap();
    assert!(open_location_file(&path).err().unwrap().contains("another server uses it"));
    drop(store);
    let (record, store) = open_location_file(&path).unwrap();
    assert_eq!(record, b"one two");
    done(store.replace(Bytes::from_static(b"three "))).unwrap();
    assert!(open_location_file(&path).is_err(), "the new file is locked, too");
    done(store.append(Bytes::from_static(b"four"))).unwrap();
    drop(store);
    assert_eq!(open_location_file(&path).unwrap().0, b"three four");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_that_others_may_use_is_not_used() {
    let scratch = Scratch::new();
    let path = scratch.path().join("places");
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(open_location_file(&path).err().unwrap().contains("0600"));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(scratch.path().join("elsewhere"), &path).unwrap();
    assert!(open_location_file(&path).is_err());
    assert!(open_location_file(&scratch.path().join("missing/places")).is_err());
}

#[test]
fn where_there_is_no_room_the_old_file_stays() {
    let scratch = Scratch::new();
    let path = scratch.path().join("places");
    let (_, store) = open_location_file(&path).unwrap();
    done(store.append(Bytes::from_static(b"old"))).unwrap();
    // A directory that cannot be removed stands where the new file would be written.
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    fs::create_dir(&beside).unwrap();
    assert!(done(store.replace(Bytes::from_static(b"new"))).is_err());
    drop(store);
    assert_eq!(open_location_file(&path).unwrap().0, b"old");
}
