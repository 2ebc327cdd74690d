use std::collections::BTreeMap;

use super::super::*;

const HOME: u64 = 0x1234_5678_9abc_def0;

/// Numbers as file systems give them: plain ones, a layer of overlayfs in the highest bits, hashes.
fn odd_file_ids() -> Vec<u64> {
    let plain = (1..200).chain([LOW, u64::from(u32::MAX), u64::MAX, 1 << 63, 1 << LOW_BITS]);
    let layers = (1..4).flat_map(|layer| (1..50).map(move |fileid| layer << 62 | fileid));
    let hashes = (1..500u64).map(|fileid| fileid.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    plain.chain(layers).chain(hashes).collect()
}

// rule: two objects of a volume never have one inode number, whatever file systems it has
#[test]
fn objects_of_different_file_systems_have_different_numbers() {
    let file_ids = FileIds::around(HOME);
    let mut given = BTreeMap::new();
    for fsid in [HOME, 0, 1, 2, HOME ^ 1, HOME << 1, u64::MAX] {
        for fileid in odd_file_ids() {
            let told = file_ids.of(fsid, fileid).unwrap();
            let other = *given.entry(told).or_insert((fsid, fileid));
            assert_eq!(other, (fsid, fileid), "both have {told}");
        }
    }
}

#[test]
fn the_home_keeps_its_numbers_and_others_keep_theirs_over_a_restart() {
    let (file_ids, restarted) = (FileIds::around(HOME), FileIds::around(HOME));
    for fileid in odd_file_ids() {
        assert_eq!(file_ids.of(HOME, fileid), Ok(fileid));
    }
    // Found in another order after the restart.
    let others: Vec<(u64, u64)> = (1..30).flat_map(|fsid| [(fsid, 2), (fsid, 77), (fsid, 1 << 62 | 5)]).collect();
    let before: Vec<_> = others.iter().map(|(fsid, fileid)| file_ids.of(*fsid, *fileid).unwrap()).collect();
    for ((fsid, fileid), before) in others.iter().zip(&before).rev() {
        assert_eq!(restarted.of(*fsid, *fileid).as_ref(), Ok(before));
    }
    assert!(before.iter().all(|fileid| *fileid != 0));
}

#[test]
fn a_home_that_comes_late_to_a_place_moves_aside() {
    let file_ids = FileIds::around(HOME);
    let theirs = file_ids.of(7, 9).unwrap();
    assert!(theirs > LOW && theirs & LOW == 9);
    // The home has an object with just this number.
    let ours = file_ids.of(HOME, theirs).unwrap();
    assert_ne!(ours, theirs);
    assert_eq!((file_ids.of(HOME, theirs), file_ids.of(7, 9)), (Ok(ours), Ok(theirs)));
}

#[test]
fn without_a_free_place_there_is_an_error_and_no_number_of_others() {
    let mut prefixes =
        FileIdPrefixes { of_home: vec![u64::MAX; (PREFIXES / WORD_BITS) as usize], ..FileIdPrefixes::default() };
    assert_eq!(prefixes.of(HOME, 7, 0), None);
    assert_eq!(prefixes.of(HOME, HOME, 12), Some(12));
    // The last free prefix is found.
    prefixes.of_home[1000] &= !2;
    assert_eq!(prefixes.of(HOME, 7, 0), Some(64_001));
}
