//! Extended attributes.

use afflux_simulator::TreeOptions;
use afflux_volume::{Caller, VolumeError, XATTR_BYTES_MAX, XATTR_NAME_BYTES_MAX, XattrChange};
use bytes::Bytes;

use crate::clients::VolumeFixture;
use crate::held::{create, read, write};

const OWN: &Caller = &Caller::SERVER;
const NAME: &[u8] = b"user.name";

#[test]
fn attributes_are_made_replaced_listed_and_removed() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let file = create(volume, &root, b"file").await;
        let value = |text: &'static str| Bytes::from_static(text.as_bytes());
        let change = async |change| volume.change_xattr_by(OWN, &file, NAME, change).await;
        assert_eq!(change(XattrChange::Replace(value("x"))).await.result, Err(VolumeError::NoAttribute));
        assert_eq!(change(XattrChange::Remove).await.result, Err(VolumeError::NoAttribute));
        assert_eq!(volume.xattr_by(OWN, &file, NAME).await, Err(VolumeError::NoAttribute));
        write(volume, &file, 0, b"dirty").await;
        let before = volume.attributes(&file).await.unwrap();
        let made = change(XattrChange::Create(value("one"))).await;
        made.result.unwrap();
        let after = volume.attributes(&file).await.unwrap();
        assert!(after.ctime > before.ctime && after.mtime == before.mtime);
        assert_eq!(made.consistency.before.unwrap().ctime, before.ctime);
        assert_eq!(change(XattrChange::Create(value("two"))).await.result, Err(VolumeError::Exists));
        assert_eq!(volume.xattr_by(OWN, &file, NAME).await.unwrap(), "one");
        change(XattrChange::Replace(value(""))).await.result.unwrap();
        assert_eq!(volume.xattr_by(OWN, &file, NAME).await.unwrap(), "");
        change(XattrChange::Set(value("three"))).await.result.unwrap();
        assert_eq!(volume.xattrs_by(OWN, &file).await.unwrap(), [NAME]);
        change(XattrChange::Remove).await.result.unwrap();
        assert_eq!(volume.xattrs_by(OWN, &file).await.unwrap(), [] as [&[u8]; 0]);
        assert_eq!(read(volume, &file).await, b"dirty");
    });
}

#[test]
fn bad_names_and_values_and_foreign_namespaces_are_refused() {
    let lab = VolumeFixture::new(2, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let file = create(volume, &root, b"file").await;
        let set = async |caller: &Caller, name: &[u8], bytes: usize| {
            let value = XattrChange::Set(Bytes::from(vec![0; bytes]));
            volume.change_xattr_by(caller, &file, name, value).await.result
        };
        let long = [b'n'; XATTR_NAME_BYTES_MAX + 1];
        assert_eq!(set(OWN, &long, 1).await, Err(VolumeError::NameTooLong { bytes: long.len() }));
        assert_eq!(volume.xattr_by(OWN, &file, &long).await, Err(VolumeError::NameTooLong { bytes: long.len() }));
        for name in [&b""[..], b"user.a\0b"] {
            assert!(matches!(set(OWN, name, 1).await, Err(VolumeError::Invalid { .. })));
        }
        let bytes = XATTR_BYTES_MAX + 1;
        assert_eq!(set(OWN, NAME, bytes).await, Err(VolumeError::ValueTooLong { bytes }));
        assert_eq!(set(OWN, NAME, bytes - 1).await, Ok(()));
        assert_eq!(set(OWN, b"none.a", 1).await, Err(VolumeError::NotSupported));
        assert_eq!(set(&Caller::SERVER.reading_only(), NAME, 1).await, Err(VolumeError::ReadOnly));
        let user = volume.caller(1000, 1000, &[]);
        assert_eq!(set(&user, b"trusted.a", 1).await, Err(VolumeError::NotPermitted));
        assert_eq!(set(OWN, b"trusted.a", 1).await, Ok(()));
        // A held file has attributes without a name, too.
        let held = volume.hold(&file).unwrap();
        volume.remove(&root, b"file").await.result.unwrap();
        assert_eq!(set(OWN, NAME, 3).await, Ok(()));
        drop(held);
        assert_eq!(set(OWN, NAME, 3).await, Err(VolumeError::Stale));
        assert_eq!(volume.xattr_by(OWN, &file, NAME).await, Err(VolumeError::Stale));
    });
}
