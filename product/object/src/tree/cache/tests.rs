use afflux_volume::Timestamp;

use super::*;
use crate::format::tree::Content;

fn inode(changes: u64) -> InodeRecord {
    let time = Timestamp::default();
    InodeRecord {
        mode: 0,
        links: 1,
        uid: 0,
        gid: 0,
        accessed: time,
        modified: time,
        modified_set: time,
        changed: time,
        changes,
        has_xattrs: false,
        acls: Default::default(),
        content: Content::Regular,
    }
}

#[test]
fn used_slots_stay_and_unused_ones_are_bounded() {
    let cache = SlotCache::new(8);
    let used: Vec<_> = (0..20).map(|ino| cache.slot(ino)).collect();
    used.iter().for_each(|slot| slot.learn(inode(slot.ino)));
    for ino in 100..1_000 {
        cache.slot(ino).learn(inode(ino));
        assert!(cache.len() <= 8 + used.len() + 1, "{} slots", cache.len());
    }
    for slot in &used {
        assert!(Arc::ptr_eq(slot, &cache.slot(slot.ino)));
    }
    drop(used);
    for ino in 100..1_000 {
        cache.slot(ino).learn(inode(ino));
    }
    assert!(cache.len() <= 8, "{} slots", cache.len());
    assert_eq!(cache.slot(3).inode(), None, "it was dropped");
}

#[test]
fn an_inode_that_was_read_late_does_not_undo_a_change() {
    let cache = SlotCache::new(8);
    let slot = cache.slot(1);
    slot.set(inode(2));
    slot.learn(inode(1));
    assert_eq!(slot.inode(), Some(inode(2)));
}
