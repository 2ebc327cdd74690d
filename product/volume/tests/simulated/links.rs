//! rule: a file's count of links is right after changes of its names and attributes that overlap
//! kept in: `product/volume/src/objects/inode.rs`

use afflux_simulator::{Random, TreeOptions};
use afflux_volume::AttributeChange;
use futures_util::future::join;

use crate::clients::VolumeFixture;
use crate::held::create;

const SEEDS: u64 = 200;
const ROUNDS: u32 = 20;

/// A client links a file into one directory. Another client removes a link from a second directory. A third changes the
/// mode. The directories have a lock each, so the host's answers come in any order, and its clock may give two changes
/// one time.
#[test]
fn overlapping_changes_of_names_leave_the_right_count() {
    for seed in 0..SEEDS {
        one_seed(seed);
    }
}

fn one_seed(seed: u64) {
    let clock_tick_ns = [1, 4_000_000][seed as usize % 2];
    let lab = VolumeFixture::new(seed, TreeOptions { clock_tick_ns, ..TreeOptions::default() });
    let volume = &lab.volume;
    let mut random = Random::new(seed).fork(5);
    lab.run(async {
        let root = volume.mount(b"").await.unwrap();
        let directory =
            async |name: &[u8]| volume.make_directory(&root, name, AttributeChange::default()).await.result.unwrap().0;
        let (one, other) = (directory(b"one").await, directory(b"other").await);
        let file = create(volume, &root, b"file").await;
        volume.link(&file, &other, b"taken").await.result.unwrap();
        for round in 0..ROUNDS {
            let (given, taken) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
            let mode = AttributeChange { mode: Some(0o600 | round), ..AttributeChange::default() };
            let with_mode = random.below(2) == 0;
            let change_mode = async {
                if with_mode {
                    volume.set_attributes(&file, mode, None).await.result.unwrap();
                }
            };
            let links = join(volume.link(&file, given, b"taken"), volume.remove(taken, b"taken"));
            let ((linked, removed), ()) = join(links, change_mode).await;
            linked.result.unwrap();
            removed.result.unwrap();
            let found = volume.attributes(&file).await.unwrap();
            assert_eq!(found.links, 2, "seed {seed}, round {round}");
        }
    });
}
