use std::sync::Arc;

use super::*;

/// Inodes that became dirty one tick after the other.
fn dirtied(count: usize) -> (Lists, Vec<Inode>) {
    let mut lists = Lists::default();
    let mut inodes: Vec<Inode> = (0..count).map(|_| Inode::new(0, 0, Backing::new(Arc::new(())))).collect();
    (0..count).for_each(|id| lists.mark_dirty(&mut inodes, InodeId(id), id as u64));
    (lists, inodes)
}

fn numbers(list: &VecDeque<InodeId>) -> Vec<usize> {
    list.iter().map(|id| id.0).collect()
}

#[test]
fn the_oldest_inode_is_written_first_and_an_inode_that_gave_up_its_slice_before_it() {
    let (mut lists, mut inodes) = dirtied(3);
    lists.queue_io(&mut inodes, None);
    assert_eq!((numbers(&lists.io), lists.next()), (vec![2, 1, 0], Some(InodeId(0))));
    lists.requeue_io(&mut inodes, InodeId(0));
    lists.requeue_io(&mut inodes, InodeId(1));
    assert_eq!((numbers(&lists.more_io), lists.oldest_more_io()), (vec![1, 0], Some(InodeId(0))));
    lists.queue_io(&mut inodes, None);
    assert_eq!(numbers(&lists.io), [2, 1, 0]);
}

#[test]
fn an_expiry_takes_the_old_end_only() {
    let (mut lists, mut inodes) = dirtied(4);
    lists.queue_io(&mut inodes, Some(1));
    assert_eq!((numbers(&lists.io), numbers(&lists.dirty)), (vec![1, 0], vec![3, 2]));
}

#[test]
fn a_redirtied_inode_gets_a_new_age_if_a_younger_one_waits() {
    let (mut lists, mut inodes) = dirtied(2);
    lists.queue_io(&mut inodes, Some(0));
    lists.redirty_tail(&mut inodes, InodeId(0), 9);
    assert_eq!((numbers(&lists.dirty), inodes[0].dirtied_when), (vec![0, 1], 9));
    let (mut lists, mut inodes) = dirtied(2);
    lists.queue_io(&mut inodes, None);
    lists.redirty_tail(&mut inodes, InodeId(0), 9);
    assert_eq!(inodes[0].dirtied_when, 0, "alone on the list, it keeps its age");
}

#[test]
fn an_inode_that_is_being_written_changes_its_state_alone() {
    let (mut lists, mut inodes) = dirtied(1);
    lists.queue_io(&mut inodes, None);
    (inodes[0].is_syncing, inodes[0].is_dirty) = (true, false);
    lists.mark_dirty(&mut inodes, InodeId(0), 5);
    assert_eq!((numbers(&lists.io), inodes[0].is_dirty, inodes[0].dirtied_when), (vec![0], true, 0));
    lists.remove(&mut inodes, InodeId(0));
    assert!(!lists.has_dirty());
}

#[test]
fn dirty_pages_under_writeback_are_told_from_others() {
    let mut inode = Inode::new(0, 0, Backing::new(Arc::new(())));
    inode.dirty.insert(10..20);
    inode.writeback.insert(5..12);
    inode.writeback.insert(15..16);
    assert_eq!(inode.next_dirty(0..100), Next::UnderWriteback(10..12));
    assert_eq!(inode.next_dirty(12..100), Next::Pages(12..15));
    assert_eq!(inode.next_dirty(16..18), Next::Pages(16..18));
    assert_eq!(inode.next_dirty(20..100), Next::None);
}
