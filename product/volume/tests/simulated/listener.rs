//! What the listener is told of others' changes.

use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::TreeOptions;
use afflux_volume::{
    AttributeChange, Caller, DeviceKey, ForeignChange, ForeignListener, RenameHow, SetTime, Timestamp, XattrChange,
};
use bytes::Bytes;

use crate::clients::VolumeFixture;
use crate::held::{create, write};

#[derive(Default)]
struct Told(Mutex<Vec<ForeignChange>>);

impl ForeignListener for Told {
    fn changed(&self, _device: DeviceKey, change: ForeignChange) {
        self.0.lock().unwrap().push(change);
    }
}

impl Told {
    fn take(&self) -> Vec<ForeignChange> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn fixture(seed: u64) -> (VolumeFixture, Arc<Told>) {
    let (lab, told) = (VolumeFixture::new(seed, TreeOptions::default()), Arc::new(Told::default()));
    lab.volume.listen(Some(Arc::clone(&told) as _));
    (lab, told)
}

#[test]
fn changes_through_another_front_end_are_told_and_own_ones_are_not() {
    let (lab, told) = fixture(1);
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let (own, nfs) = (Caller::SERVER.listening(), Caller::SERVER);
        let at = volume.handle(&root);
        let name =
            |name: &'static str| ForeignChange::Name { directory: at, name: Bytes::from_static(name.as_bytes()) };
        let file = create(volume, &root, b"file").await;
        assert_eq!(told.take(), [name("file")]);
        let handle = volume.handle(&file);
        let (bytes, attributes) = (ForeignChange::Bytes(handle), ForeignChange::Attributes(handle));
        for (caller, expected) in [(&nfs, true), (&own, false)] {
            let expect = |what: &str, changes: &[&ForeignChange]| {
                let told = told.take();
                let told: Vec<_> = told.iter().collect();
                assert_eq!(told, if expected { changes } else { &[] }, "{what}");
            };
            volume.write_by(caller, None, &file, 0, &Bytes::from_static(b"bytes")).await.result.unwrap();
            expect("write", &[&bytes]);
            assert!(volume.try_write(caller, &file, 0, b"BYTES").is_some());
            expect("overwrite", &[&bytes]);
            let mode = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
            volume.set_attributes_by(caller, &file, mode, None).await.result.unwrap();
            expect("mode", &[&attributes]);
            let size = AttributeChange { size: Some(3), ..AttributeChange::default() };
            volume.set_attributes_by(caller, &file, size, None).await.result.unwrap();
            expect("size", &[&bytes]);
            let guard = Timestamp { seconds: 1, nanos: 0 };
            assert!(volume.set_attributes_by(caller, &file, mode, Some(guard)).await.result.is_err());
            expect("nothing changed", &[]);
            let change = XattrChange::Set(Bytes::new());
            volume.change_xattr_by(caller, &file, b"user.a", change).await.result.unwrap();
            expect("extended attribute", &[&attributes]);
            volume.link_by(caller, &file, &root, b"link").await.result.unwrap();
            expect("link", &[&name("link"), &attributes]);
            let swapped = volume.rename_how_by(caller, &root, b"link", &root, b"new", RenameHow::NoReplace).await;
            swapped.0.result.unwrap();
            expect("rename", &[&name("link"), &attributes, &name("new")]);
            volume.remove_by(caller, &root, b"new").await.result.unwrap();
            expect("remove", &[&name("new"), &attributes]);
            assert!(volume.remove_by(caller, &root, b"new").await.result.is_err());
            expect("no such name", &[]);
        }
        volume.listen(None);
        write(volume, &file, 0, b"nobody listens").await;
        assert!(told.take().is_empty());
    });
}

#[test]
fn what_a_look_at_the_host_finds_is_told_whoever_looked() {
    let (lab, told) = fixture(2);
    let volume = &lab.volume;
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let file = create(volume, &root, b"file").await;
        write(volume, &file, 0, &[1; 5000]).await;
        volume.sync(&file, 0, 0).await.result.unwrap();
        volume.attributes(&file).await.unwrap();
        told.take();
        let platform = lab.world.platform();
        let later = || platform.sleep_until(platform.now().after(5 * Nanos::SECOND));
        later().await;
        volume.attributes(&file).await.unwrap();
        assert!(told.take().is_empty(), "nobody changed it");
        lab.disk.change_behind(lab.tree.file_at(&["file"]).unwrap(), 100, 0, b"others");
        later().await;
        let (found, attributes) = volume.lookup_by(&Caller::SERVER.listening(), &root, b"file").await.unwrap();
        assert_eq!(attributes.size, 100);
        assert_eq!(told.take(), [ForeignChange::Bytes(volume.handle(&found))]);
        // Another server on the same tree, as a program of the host.
        let other = crate::clients::serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
        let there = other.mount(b"").await.unwrap();
        create(&other, &there, b"new").await;
        later().await;
        volume.attributes(&root).await.unwrap();
        assert_eq!(told.take(), [ForeignChange::Names(volume.handle(&root))]);
        write(volume, &file, 0, b"dirty").await;
        told.take();
        let theirs = other.lookup(&there, b"file").await.unwrap().0;
        let change = AttributeChange { mode: Some(0o600), mtime: SetTime::Keep, ..AttributeChange::default() };
        other.set_attributes(&theirs, change, None).await.result.unwrap();
        later().await;
        volume.attributes(&file).await.unwrap();
        let changes = told.take();
        assert_eq!(changes, [ForeignChange::Attributes(volume.handle(&file))], "the mode of a file that was dirty");
        other.remove(&there, b"file").await.result.unwrap();
        later().await;
        drop((file, found));
        volume.upkeep().await;
        volume.upkeep().await;
        assert!(!told.take().is_empty(), "the loss of its name");
    });
}
