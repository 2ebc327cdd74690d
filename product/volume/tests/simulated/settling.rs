//! The end of a server: all files are made durable, and the files of one device do not wait for each other.

use afflux_engine::Platform;
use afflux_simulator::TreeOptions;

use crate::clients::VolumeFixture;
use crate::held::{create, write};

/// The virtual time of a stop that finds this number of written files.
fn stop_ns(files: usize) -> u64 {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    lab.run(async {
        let root = lab.volume.mount(b"").await.unwrap();
        let mut written = Vec::new();
        for number in 0..files {
            let file = create(&lab.volume, &root, format!("file{number}").as_bytes()).await;
            write(&lab.volume, &file, 0, &[1; 4096]).await;
            written.push(file);
        }
        let platform = lab.world.platform();
        let begun = platform.now();
        assert_eq!(lab.volume.settle_all().await, 0, "files that failed");
        let device = lab.volume.engine().status().devices[0].id;
        assert!(lab.volume.engine().dirty_files(device).is_empty());
        platform.now().since(begun)
    })
}

#[test]
fn many_files_of_a_device_are_made_durable_side_by_side() {
    let (one, many) = (stop_ns(1), stop_ns(64));
    assert!(one > 0, "the disk takes time");
    assert!(many < 16 * one, "one file: {one} ns, 64 files: {many} ns");
}
