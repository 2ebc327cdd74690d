use super::*;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

type OperationRead = Result<(ArgOp, usize), XdrError>;

fn operation(record: &[u8], at: usize, minor: u32) -> Result<(u32, OperationRead), XdrError> {
    let mut operation = ArgOp::Unsupported;
    let (number, read) = read_operation(record, at, minor, &mut operation)?;
    Ok((number, read.map(|next| (operation, next))))
}

#[test]
fn a_sequence_a_putfh_and_a_write_are_passed_where_they_are_whole() {
    let sequence = [&[53_u32][..], &[7; 8]].concat();
    let whole = words(&[&sequence[..], &[22, 8, 1, 2, 10]].concat());
    assert_eq!(behind_usual(&whole, 0), (2, whole.len() - 4));
    assert_eq!(behind_usual(&whole[..36 + 12], 0), (1, 36), "cut off in the handle");
    assert_eq!(behind_usual(&words(&[&sequence[..], &[24, 10]].concat()), 0), (1, 36));
    assert_eq!(behind_usual(&whole[..32], 0), (0, 0));
    assert_eq!(behind_usual(&words(&[42, 1]), 0), (0, 0));
    assert_eq!(behind_usual(&words(&[&sequence[..], &[22, 132, 1]].concat()), 0), (1, 36), "no handle is so long");
    let write = [&[38][..], &[1; 7], &[6, 7, 8, 9]].concat();
    let whole = words(&[&sequence[..], &[22, 8, 1, 2], &write].concat());
    assert_eq!(behind_usual(&whole, 0), (3, whole.len() - 4));
    assert_eq!(behind_usual(&whole[..whole.len() - 8], 0), (2, 52), "cut off in the data");
}

#[test]
fn reads_the_head_and_the_operations_one_after_the_other() {
    let record = words(&[3, u32::from_be_bytes(*b"tag\0"), 1, 2, 22, 8, 1, 2, 10]);
    let head = head(&record, 0).unwrap();
    assert_eq!((&record[head.tag.range()], head.minor, head.count), (&b"tag"[..], 1, 2));
    let (number, read) = operation(&record, head.at, 1).unwrap();
    let (first, next) = read.unwrap();
    assert!(number == 22 && matches!(first, ArgOp::Putfh(handle) if record[handle.range()] == words(&[1, 2])));
    let (number, read) = operation(&record, next, 1).unwrap();
    assert!(number == 10 && matches!(read, Ok((ArgOp::Getfh, end)) if end == record.len()));
    assert!(operation(&record, record.len(), 1).is_err());
}

#[test]
fn knows_the_operations_of_each_minor_version() {
    for number in 0..80 {
        let record = words(&[number]);
        let is_illegal = |minor| {
            let read = operation(&record, 0, minor).unwrap().1;
            matches!(read, Ok((ArgOp::Illegal, _)))
        };
        assert_eq!(is_illegal(1), !(3..=58).contains(&number), "{number}");
        assert_eq!(is_illegal(2), !(3..=75).contains(&number), "{number}");
    }
}

/// Every operation, cut at each byte and with each byte changed: reading ends, and never beyond the record.
#[test]
fn survives_any_bytes() {
    for number in 0..80_u32 {
        for fill in [0_u8, 1, 2, 3, 4, 7, 0x7f, 0xff] {
            let mut record = words(&[number]);
            record.extend([fill; 256]);
            for end in (4..record.len()).step_by(4) {
                for word in [0_u32, 1, 4, u32::MAX] {
                    let mut changed = record[..end].to_vec();
                    let at = end - 4;
                    changed[at..].copy_from_slice(&word.to_be_bytes());
                    if let Ok((_, Ok((_, next)))) = operation(&changed, 0, 2) {
                        assert!(next <= changed.len());
                    }
                }
            }
        }
    }
}

#[test]
fn a_long_set_of_attributes_is_read_to_its_end() {
    let record = words(&[9, 5, 1, 2, 3, 0, 8, 10]);
    let (_, read) = operation(&record, 0, 1).unwrap();
    let (operation_read, next) = read.unwrap();
    assert!(matches!(operation_read, ArgOp::Getattr(Bitmap { words: [1, 2, 3], has_more: true })));
    assert_eq!(next, 28);
    // A set that claims more than the record has.
    assert!(operation(&words(&[9, u32::MAX, 1]), 0, 1).unwrap().1.is_err());
}

#[test]
fn the_data_that_an_operation_asks_for_are_those_of_its_arguments() {
    for number in [25, 68] {
        let read = words(&[number, 1, 2, 3, 4, 0, 9, 4096]);
        assert!(matches!(operation(&read, 0, 2).unwrap().1, Ok((ArgOp::Read { count: 4096, .. }, _))));
        assert_eq!(data_asked(&read, 0), Some(4096));
        assert_eq!(data_asked(&read[..28], 0), None, "it is cut off");
    }
    assert_eq!(data_asked(&words(&[9, 0]), 0), Some(0));
    assert_eq!([26, 72, 74].map(|number| data_asked(&words(&[number, 1, 1]), 0)), [None; 3], "they are read whole");
}
