use super::*;

fn marked(len: usize, last: bool) -> [u8; 4] {
    (len as u32 | if last { LAST_FRAGMENT } else { 0 }).to_be_bytes()
}

fn whole(bytes: &[u8]) -> Vec<u8> {
    [&marked(bytes.len(), true), bytes].concat()
}

fn in_fragments(bytes: &[u8], size: usize) -> Vec<u8> {
    let count = bytes.chunks(size).count();
    let fragments = bytes.chunks(size).enumerate();
    fragments.flat_map(|(at, piece)| [&marked(piece.len(), at + 1 == count), piece].concat()).collect()
}

/// The records of a stream that is received in pieces of `piece` bytes; the same whether the pieces are copied first or
/// share memory with another owner.
fn received(stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, String> {
    let copied = received_as(stream, piece, false);
    assert_eq!(copied, received_as(stream, piece, true));
    copied
}

fn received_as(stream: &[u8], piece: usize, shared: bool) -> Result<Vec<Vec<u8>>, String> {
    let mut records = Records::default();
    let mut input = BytesMut::new();
    let mut out = Vec::new();
    for piece in stream.chunks(piece) {
        let mut piece = Bytes::copy_from_slice(piece);
        if shared && input.is_empty() {
            records.receive_shared(&mut piece).map_err(|error| error.to_string())?;
        }
        input.extend_from_slice(&piece);
        records.receive(&mut input).map_err(|error| error.to_string())?;
        while let Some(mut chunk) = records.pop() {
            while let Some(record) = chunk.next_record() {
                out.push(chunk.bytes(record.clone()).to_vec());
                assert_eq!(chunk.keep(record, &mut BytesMut::new()), out.last().unwrap()[..]);
            }
            records.put_back(chunk);
        }
        assert_eq!(records.waiting(), 0);
        assert!(records.waiting_bytes() <= stream.len() + MARK_BYTES);
    }
    Ok(out)
}

#[test]
fn finds_records_wherever_the_stream_is_cut() {
    let wanted: Vec<Vec<u8>> = vec![b"first".to_vec(), b"second record".to_vec(), vec![7; 300], b"x".to_vec()];
    let mut stream = Vec::new();
    stream.extend(whole(&wanted[0]));
    stream.extend(in_fragments(&wanted[1], 4));
    // An empty fragment in the middle and one at the end are allowed.
    stream.extend([&marked(0, false), &marked(300, false), &wanted[2][..], &marked(0, true)].concat());
    stream.extend(whole(&wanted[3]));
    for piece in 1..=stream.len() {
        assert_eq!(received(&stream, piece).unwrap(), wanted, "in pieces of {piece}");
    }
}

#[test]
fn one_receive_takes_many_records_at_once_and_counts_them() {
    let stream = whole(b"abcd").repeat(10);
    let mut input = BytesMut::from(&stream[..stream.len() - 1]);
    let mut records = Records::default();
    records.receive(&mut input).unwrap();
    assert_eq!((records.waiting(), records.waiting_bytes(), input.len()), (9, 9 * 8, 7));
    let mut chunk = records.pop().unwrap();
    assert_eq!(chunk.next_record(), Some(4..8));
    assert_eq!((records.waiting(), records.waiting_bytes()), (0, 0));
    records.put_back(chunk);
    assert_eq!((records.waiting(), records.waiting_bytes()), (8, 8 * 8));
}

#[test]
fn keeps_the_beginning_of_records_that_are_too_long() {
    let long: Vec<u8> = (0..RECORD_BYTES_MAX + 300_000).map(|at| (at % 251) as u8).collect();
    let kept = &long[..RECORD_BYTES_MAX];
    let split = |at: usize| {
        let (first, second) = long.split_at(at);
        [&marked(first.len(), false), first, &marked(second.len(), true), second].concat()
    };
    let streams = [
        whole(&long),
        in_fragments(&long, 400_000),
        in_fragments(&long, 1 << 20),
        split(RECORD_BYTES_MAX),
        split(RECORD_BYTES_MAX + 1),
        // An empty fragment ends it.
        [&marked(long.len(), false), &long[..], &marked(0, true)].concat(),
    ];
    for stream in streams {
        let stream = [whole(b"before"), stream, whole(b"after")].concat();
        for piece in [997, 65_536, stream.len()] {
            let got = received(&stream, piece).unwrap();
            assert!(got.len() == 3 && got[0] == b"before" && got[1] == kept && got[2] == b"after", "pieces of {piece}");
        }
    }
}

#[test]
fn what_is_thrown_away_takes_no_room() {
    let mut records = Records::default();
    let mut input = BytesMut::from(&marked(SENT_BYTES_MAX, true)[..]);
    let mut remaining = SENT_BYTES_MAX;
    while remaining > 0 {
        let lacking = records.lacking(&input);
        assert!(0 < lacking && lacking <= RECORD_BYTES_MAX, "{lacking}");
        let piece = remaining.min(50_000);
        input.extend_from_slice(&vec![0; piece]);
        remaining -= piece;
        records.receive(&mut input).unwrap();
        assert!(input.len() + records.waiting_bytes() <= RECORD_BYTES_MAX + 2 * MARK_BYTES + 50_000);
    }
    assert_eq!((records.waiting(), input.len()), (1, 0));
}

#[test]
fn refuses_records_that_are_far_too_long_before_they_come() {
    let longest = SENT_BYTES_MAX;
    assert!(received(&marked(longest, true), 4).unwrap().is_empty());
    let error = received(&marked(longest + 1, true), 4).unwrap_err();
    assert!(error.contains(&(longest + 1).to_string()) && error.contains(&longest.to_string()), "{error}");
    // Neither in one fragment nor in several.
    let part = vec![0; RECORD_BYTES_MAX + 1];
    let stream = [&marked(part.len(), false), &part[..], &marked(longest - part.len() + 1, true)].concat();
    assert!(received(&stream, stream.len()).is_err());
    assert!(received(b"GET / HTTP/1.1\r\n", 16).is_err());
}

#[test]
fn refuses_records_of_nothing_and_endless_ones() {
    assert!(received(&marked(0, true), 4).is_err());
    assert!(received(&[marked(0, false), marked(0, true)].concat(), 8).is_err());
    let most = [marked(0, false).repeat(FRAGMENTS_MAX as usize - 1), whole(b"abcd")].concat();
    assert_eq!(received(&most, most.len()).unwrap(), [b"abcd"]);
    let more = marked(0, false).repeat(FRAGMENTS_MAX as usize + 1);
    assert!(received(&more, more.len()).is_err());
}

#[test]
fn says_how_much_is_lacking() {
    let records = Records::default();
    assert_eq!(records.lacking(b""), 4);
    assert_eq!(records.lacking(&[0x80, 0]), 2);
    assert_eq!(records.lacking(&whole(&[0; 100])[..10]), 94);
    assert_eq!(records.lacking(&whole(&[0; 100])), 0);
    assert_eq!(records.lacking(&[0xff; 4]), RECORD_BYTES_MAX);
}

#[test]
fn a_small_record_does_not_hold_a_large_buffer() {
    const LARGE: usize = 128 << 10;
    let stream = [whole(&[1; 100]), whole(&[2; LARGE]), whole(&[3; 64 << 10])].concat();
    let mut input = BytesMut::from(&stream[..]);
    let mut records = Records::default();
    records.receive(&mut input).unwrap();
    let mut chunk = records.pop().unwrap();
    let shares = |chunk: &Chunk, kept: &Bytes| chunk.bytes.as_ptr_range().contains(&kept.as_ptr());
    let small = chunk.next_record().unwrap();
    let kept = chunk.keep(small, &mut BytesMut::new());
    assert!(!shares(&chunk, &kept) && kept == [1; 100][..]);
    let large = chunk.next_record().unwrap();
    let kept = chunk.keep(large, &mut BytesMut::new());
    assert!(shares(&chunk, &kept) && kept == [2; LARGE][..]);
    // A waiting record does not hold the memory of finished ones either.
    records.put_back(chunk);
    assert!(records.waiting_bytes() < 70 << 10);
    let mut chunk = records.pop().unwrap();
    assert!(chunk.bytes.len() < 70 << 10);
    let rest = chunk.next_record().unwrap();
    assert!(chunk.bytes(rest) == [3; 64 << 10] && chunk.next_record().is_none());
}

#[test]
fn a_shared_piece_that_is_a_record_is_not_copied() {
    let keeps = |stream: &[u8]| {
        let mut piece = Bytes::copy_from_slice(stream);
        let memory = piece.as_ptr_range();
        let mut records = Records::default();
        records.receive_shared(&mut piece).unwrap();
        let mut chunk = records.pop().unwrap();
        let record = chunk.next_record().unwrap();
        memory.contains(&chunk.keep(record, &mut BytesMut::new()).as_ptr())
    };
    let record = whole(&[7; 64 << 10]);
    assert!(keeps(&record));
    // A record that is a small part of its piece is copied, whether or not the next one is complete.
    assert!(!keeps(&record.repeat(3)));
    assert!(!keeps(&[&record[..], &whole(&[8; 200 << 10])[..100 << 10]].concat()));
}
