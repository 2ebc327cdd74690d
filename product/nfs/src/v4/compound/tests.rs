use afflux_volume::TARGET_BYTES_MAX;

use super::arrived;
use crate::limits::READ_BYTES_MAX;

/// A compound of SEQUENCE and these operations, whose arguments are words.
fn record(operations: &[&[u32]]) -> Vec<u8> {
    let sequence: &[u32] = &[53, 0, 0, 0, 0, 1, 0, 0, 0];
    let head: &[u32] = &[0, 1, operations.len() as u32 + 1];
    let words = [head, sequence].into_iter().chain(operations.iter().copied()).flatten();
    words.flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn the_longest_replies_of_all_operations_are_foreseen() {
    const READ_LINK: &[u32] = &[27];
    const READ: &[u32] = &[25, 0, 0, 0, 0, 0, 0, 5000];
    let bytes = |operations: &[&[u32]]| {
        let record = record(operations);
        arrived(&record, 0).unwrap().data_bytes_max(&record)
    };
    assert_eq!(bytes(&[&[24]]), 0);
    assert_eq!(bytes(&[&[24], READ_LINK]), TARGET_BYTES_MAX as u32);
    assert_eq!(bytes(&[READ_LINK; 62]), 62 * TARGET_BYTES_MAX as u32);
    assert_eq!(bytes(&[READ_LINK, READ]), TARGET_BYTES_MAX as u32 + 5000);
    assert_eq!(bytes(&[&[25, 0, 0, 0, 0, 0, 0, u32::MAX], READ_LINK]), READ_BYTES_MAX);
}
