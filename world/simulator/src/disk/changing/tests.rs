use super::*;

const BLOCK: u64 = 512;

/// The expected answer of the index, by comparing the two ranges directly.
fn overlaps(first: Operation, second: Operation) -> bool {
    let (Some(first), Some(second)) = (touched(first, BLOCK), touched(second, BLOCK)) else { return false };
    first.0 < second.1 && second.0 < first.1
}

#[test]
fn whatever_overlaps_is_found_and_nothing_else() {
    let write = |offset, len| Operation::Write { offset, len };
    let operations = [
        write(0, 4096),
        write(4096, 100),
        write(4608, 512),
        write(8192, 4096),
        write(4000, 200),
        Operation::Punch { offset: 4096, len: 4096 },
        Operation::Punch { offset: 12_288, len: 8192 },
        Operation::SetSize { size: 0 },
        Operation::SetSize { size: 5000 },
        Operation::SetSize { size: 1 << 40 },
        Operation::Read { offset: 0, len: 1 << 20 },
        Operation::Sync,
    ];
    let mut found = 0;
    for mask in 0_u32..1 << operations.len() {
        let (mut changing, mut inside): (Changing, Vec<Operation>) = (Changing::default(), Vec::new());
        for operation in operations.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).map(|(_, it)| *it) {
            let expected = inside.iter().any(|other| overlaps(*other, operation));
            let conflict = changing.conflict(DiskFileId(7), operation, BLOCK);
            assert_eq!(conflict.is_some(), expected, "{operation:?} beside {inside:?}");
            assert!(conflict.is_none_or(|other| overlaps(other, operation)));
            assert_eq!(changing.conflict(DiskFileId(6), operation, BLOCK), None);
            if expected {
                found += 1;
            } else {
                changing.begins(DiskFileId(7), operation, BLOCK);
                inside.push(operation);
            }
        }
        inside.iter().for_each(|operation| changing.ended(DiskFileId(7), *operation, BLOCK));
        assert!(changing.ranges.is_empty());
    }
    assert!(found > 1000);
}
