use super::*;

fn calls(from: u64, count: u64) -> Vec<RecordedCall> {
    let call = |offset| RecordedCall { operation: TracedOperation::Read, file: 1, offset, bytes: 1 };
    (from..from + count).map(call).collect()
}

#[test]
fn nothing_is_kept_while_nobody_reads() {
    let recording = Arc::new(Recording::default());
    recording.note(&mut calls(0, 3), || panic!("no clock is asked"));
    assert!(!recording.is_on());
    let mut reader = recording.read().unwrap();
    assert!(recording.is_on() && recording.read().is_none(), "one reader at a time");
    recording.note(&mut calls(5, 2), || 70);
    let (taken, lost) = reader.take(10);
    assert_eq!(
        (taken.iter().map(|(at, call)| (*at, call.offset)).collect::<Vec<_>>(), lost),
        (vec![(70, 5), (70, 6)], 0)
    );
    drop(reader);
    assert!(!recording.is_on());
    recording.note(&mut calls(9, 1), || 80);
    assert!(recording.read().unwrap().take(10).0.is_empty(), "what came in between is nobody's");
}

#[test]
fn a_reader_that_is_too_slow_is_told_how_much_it_lost() {
    let recording = Arc::new(Recording::default());
    let mut reader = recording.read().unwrap();
    let most = RECORDED_CALLS_MAX as u64;
    for round in 0..3 {
        recording.note(&mut calls(round * most / 2, most / 2), || round);
    }
    let (taken, lost) = reader.take(usize::MAX);
    assert_eq!((taken.len(), lost, taken[0].1.offset), (RECORDED_CALLS_MAX, most / 2, most / 2));
    assert_eq!(reader.take(1), (Vec::new(), 0));
}

#[test]
fn a_durable_write_is_recorded_as_a_write_and_a_sync() {
    let recording = Arc::new(Recording::default());
    let mut reader = recording.read().unwrap();
    let write = RecordedCall { operation: TracedOperation::Write, file: 7, offset: 5, bytes: 3 };
    recording.note_call(write, false, || 1);
    recording.note_call(write, true, || 2);
    let sync = RecordedCall { operation: TracedOperation::Sync, file: 7, offset: 0, bytes: 0 };
    assert_eq!(reader.take(10), (vec![(1, write), (2, write), (2, sync)], 0));
}
