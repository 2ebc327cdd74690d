use super::*;

fn identity(number: u64) -> Identity {
    Identity::new(7, 1, 2, &number.to_be_bytes())
}

fn place(number: u64, parent: u64, name: &str) -> LocationEntry {
    LocationEntry::At(
        identity(number),
        Location { parent: identity(parent), name: Bytes::copy_from_slice(name.as_bytes()) },
    )
}

fn some() -> Vec<LocationEntry> {
    let longest = Identity::new(u64::MAX, 255, 255, &[9; IDENTITY_BYTES_MAX]);
    let name = Bytes::from(vec![b'n'; NAME_BYTES_MAX]);
    vec![
        place(2, 1, "a"),
        place(3, 2, "\u{fc}ber\n"),
        LocationEntry::Gone(identity(2)),
        LocationEntry::At(longest, Location { parent: longest, name }),
        place(4, 1, "z"),
    ]
}

#[test]
fn what_was_written_is_read() {
    let record = written(some().into_iter());
    let read = read(&record);
    assert!(read.whole);
    assert_eq!(read.entries, some());
    let nothing = super::read(b"");
    assert!(nothing.whole && nothing.entries.is_empty());
}

/// The end of each entry in a record, after that of the head.
fn ends(entries: &[LocationEntry]) -> Vec<usize> {
    (0..=entries.len()).map(|count| written(entries[..count].iter().cloned()).len()).collect()
}

#[test]
fn a_record_that_was_cut_anywhere_is_read_up_to_there() {
    let (record, ends) = (written(some().into_iter()), ends(&some()));
    for len in 0..record.len() {
        let read = read(&record[..len]);
        let whole = ends.iter().filter(|end| **end <= len).count().saturating_sub(1);
        assert_eq!(read.entries, some()[..whole], "{len} bytes");
        assert_eq!(read.whole, len == 0 || ends.contains(&len), "{len} bytes");
    }
}

#[test]
fn a_byte_that_changed_ends_the_reading_there() {
    let (record, ends) = (written(some().into_iter()), ends(&some()));
    for at in 0..record.len() {
        for bit in [0x01, 0x80] {
            let mut changed = record.clone();
            changed[at] ^= bit;
            let read = read(&changed);
            let before = ends.iter().filter(|end| **end <= at).count().saturating_sub(1);
            assert!(!read.whole, "byte {at}");
            assert_eq!(read.entries, some()[..before], "byte {at}");
        }
    }
    assert!(!read(&[0xff; 4096]).whole);
}

#[test]
fn what_is_new_is_written_behind_and_all_of_it_when_there_is_too_much() {
    let mut log = LocationLog::behind(0, true);
    assert!(matches!(log.take(0), LogWrite::Nothing), "nothing is written where nothing is known");
    log.add(&place(2, 1, "a"));
    assert!(matches!(log.take(1), LogWrite::All), "there was no record");
    log.begins_anew(1);
    assert!(matches!(log.take(1), LogWrite::Nothing));
    log.add(&place(3, 1, "b"));
    let LogWrite::More(more) = log.take(2) else { panic!() };
    let record = [written([place(2, 1, "a")].into_iter()), more.to_vec()].concat();
    assert_eq!(read(&record).entries, [place(2, 1, "a"), place(3, 1, "b")]);

    // The same two entries over and over.
    for _ in 0..SLACK_ENTRIES + 3 {
        log.add(&place(3, 1, "c"));
    }
    assert!(matches!(log.take(2), LogWrite::All));
    log.begins_anew(2);
    log.add(&place(3, 1, "d"));
    log.failed();
    log.add(&place(3, 1, "e"));
    assert!(matches!(log.take(2), LogWrite::All), "nobody knows what is there");

    // More entries than may be pending.
    log.begins_anew(0);
    for number in 0..100_000 {
        log.add(&place(number, 1, "a name of some length, as files have"));
        assert!(log.pending.len() <= PENDING_BYTES_MAX);
    }
    assert!(matches!(log.take(100_000), LogWrite::All));
    assert!(matches!(LocationLog::behind(5, false).take(5), LogWrite::All), "a torn record is mended at once");
}
