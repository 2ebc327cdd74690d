//! The setuid and setgid bits of a file whose bytes change.

use afflux_simulator::TreeOptions;
use afflux_volume::AttributeChange;

use crate::clients::VolumeFixture;
use crate::held::{create, write};

fn mode(mode: u32) -> AttributeChange {
    AttributeChange { mode: Some(mode), ..AttributeChange::default() }
}

#[test]
fn a_local_change_of_a_mode_survives_the_end_of_its_setuid_bit() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    let volume = &lab.volume;
    lab.run(async {
        // Another server on the same tree acts as a program of the host.
        let other = crate::clients::serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
        let root = volume.mount(b"").await.unwrap();
        let there = other.mount(b"").await.unwrap();
        for (local, expected) in [(0o600, 0o600), (0o4700, 0o700), (0o2644, 0o644)] {
            let name = format!("{local:o}");
            let file = create(volume, &root, name.as_bytes()).await;
            volume.set_attributes(&file, mode(0o4755), None).await.result.unwrap();
            let theirs = other.lookup(&there, name.as_bytes()).await.unwrap().0;
            other.set_attributes(&theirs, mode(local), None).await.result.unwrap();

            // A write of a whole page soon after a look does not ask the host.
            write(volume, &file, 0, &[1; 4096]).await;
            assert_eq!(volume.attributes(&file).await.unwrap().mode, expected, "as told after {local:o}");
            volume.sync(&file, 0, 0).await.result.unwrap();
            let fresh = crate::clients::serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
            let root = fresh.mount(b"").await.unwrap();
            let on_host = fresh.lookup(&root, name.as_bytes()).await.unwrap().1;
            assert_eq!(on_host.mode, expected, "on the host after {local:o}");
        }
    });
}
