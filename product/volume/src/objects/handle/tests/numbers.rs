use std::collections::BTreeMap;

use super::super::*;

const HOME: u64 = 0x1234_5678_9abc_def0;

/// Numbers as file systems give them: plain ones, a layer of overlayfs in the highest bits, hashes.
fn odd_numbers() -> Vec<u64> {
    let plain = (1..200).chain([LOW, u64::from(u32::MAX), u64::MAX, 1 << 63, 1 << LOW_BITS]);
    let layers = (1..4).flat_map(|layer| (1..50).map(move |number| layer << 62 | number));
    let hashes = (1..500u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    plain.chain(layers).chain(hashes).collect()
}

// rule: two objects of a volume never have one inode number, whatever file systems it has
#[test]
fn objects_of_different_file_systems_have_different_numbers() {
    let numbers = Numbers::around(HOME);
    let mut given = BTreeMap::new();
    for fsid in [HOME, 0, 1, 2, HOME ^ 1, HOME << 1, u64::MAX] {
        for number in odd_numbers() {
            let told = numbers.of(fsid, number).unwrap();
            let other = *given.entry(told).or_insert((fsid, number));
            assert_eq!(other, (fsid, number), "both have {told}");
        }
    }
}

#[test]
fn the_home_keeps_its_numbers_and_others_keep_theirs_over_a_restart() {
    let (numbers, restarted) = (Numbers::around(HOME), Numbers::around(HOME));
    for number in odd_numbers() {
        assert_eq!(numbers.of(HOME, number), Ok(number));
    }
    // Found in another order after the restart.
    let others: Vec<(u64, u64)> = (1..30).flat_map(|fsid| [(fsid, 2), (fsid, 77), (fsid, 1 << 62 | 5)]).collect();
    let before: Vec<_> = others.iter().map(|(fsid, number)| numbers.of(*fsid, *number).unwrap()).collect();
    for ((fsid, number), before) in others.iter().zip(&before).rev() {
        assert_eq!(restarted.of(*fsid, *number).as_ref(), Ok(before));
    }
    assert!(before.iter().all(|number| *number != 0));
}

#[test]
fn a_home_that_comes_late_to_a_place_moves_aside() {
    let numbers = Numbers::around(HOME);
    let theirs = numbers.of(7, 9).unwrap();
    assert!(theirs > LOW && theirs & LOW == 9);
    // The home has an object with just this number.
    let ours = numbers.of(HOME, theirs).unwrap();
    assert_ne!(ours, theirs);
    assert_eq!((numbers.of(HOME, theirs), numbers.of(7, 9)), (Ok(ours), Ok(theirs)));
}

#[test]
fn without_a_free_place_there_is_an_error_and_no_number_of_others() {
    let mut prefixes =
        NumberPrefixes { of_home: vec![u64::MAX; (PREFIXES / WORD_BITS) as usize], ..NumberPrefixes::default() };
    assert_eq!(prefixes.of(HOME, 7, 0), None);
    assert_eq!(prefixes.of(HOME, HOME, 12), Some(12));
    // The last free prefix is found.
    prefixes.of_home[1000] &= !2;
    assert_eq!(prefixes.of(HOME, 7, 0), Some(64_001));
}
