//! Tests of the formats: what is written is read, and other bytes are refused.

use bytes::Bytes;

use super::compression::{Coder, Compression, Decoder, RunCompressor};
use super::extent::{ExtentSource, SegmentRange, StoredExtent};
use super::line::{LINE_BYTES, StoredLine};
use super::records::{COMPRESSED_RUNS, Lineage, SegmentRecord, VOLUME_FORMAT, VolumeHeader, WITH_ACLS};
use super::segment::{
    DIRECTORY_ENTRY_BYTES, FOOTER_BYTES, LineReader, SegmentWriter, check_lines, directory, lines, part, stored_lines,
};
use crate::format::FormatError;
use crate::format::extent::{EPOCH_MAX, SEGMENT_BYTES_MAX, SEGMENT_NUMBER_MAX, SegmentId};
use crate::format::segment::Pieces;

fn id() -> SegmentId {
    SegmentId::new(7, 300).unwrap()
}

fn run(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn names_are_read_as_written() {
    assert_eq!(id().name(), "data/2c/000007-000000012c");
    for segment in [id(), SegmentId::new(EPOCH_MAX, SEGMENT_NUMBER_MAX).unwrap()] {
        assert_eq!(SegmentId::parse(&segment.name()), Ok(segment));
    }
    for name in
        ["", "data/2d/000007-000000012c", "data/2c/7-12c", "data/2C/000007-000000012C", "x/2c/000007-000000012c"]
    {
        assert_eq!(SegmentId::parse(name), Err(FormatError::Name { name: name.to_owned() }));
    }
    let zero = SegmentId::parse("data/2c/000000-000000012c").unwrap_err();
    assert_eq!(zero.to_string(), "the epoch of a segment is 0 instead of 1 to 16777215");
    assert!(SegmentId::new(EPOCH_MAX + 1, 0).is_err());
    assert!(SegmentId::new(1, SEGMENT_NUMBER_MAX + 1).is_err());
}

#[test]
fn parts_of_runs_are_read_as_written() {
    let mut writer = SegmentWriter::new(id());
    writer.push(1, 0, run(100).into()).unwrap();
    let long = run(2 * LINE_BYTES + 10);
    let offset = writer.push(2, 4096, long.clone().into()).unwrap();
    let object = writer.finish().joined();
    for (skipped, bytes) in
        [(0, 1), (0, 2 * LINE_BYTES + 10), (LINE_BYTES - 1, 2), (LINE_BYTES, 5), (2 * LINE_BYTES, 10)]
    {
        let place = SegmentRange { segment: id(), offset, skipped, run: long.len() as u32, stored: None };
        let span = lines(&place, bytes);
        let fetched = object.slice(span.start as usize..span.end as usize);
        let expected = &long[skipped as usize..(skipped + bytes) as usize];
        assert_eq!(check_lines(&place, bytes, &fetched).unwrap(), expected);
        assert!(check_lines(&place, bytes, &fetched.slice(1..)).is_err());
    }
    let entries = directory(id(), &object).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!((entries[1].ino, entries[1].start, entries[1].bytes), (2, 4096, long.len() as u32));
}

fn copy_lines(place: &SegmentRange, bytes: u32, fetched: Pieces<'_>, mut copy: impl FnMut(usize, &[u8])) {
    let mut reader = LineReader::new(place, bytes, fetched);
    while reader.next(&mut Decoder::default(), &mut copy).unwrap() {}
}

// rule: Lines are read out of pieces that end anywhere, also in a checksum.
#[test]
fn pieces_may_end_anywhere() {
    let mut writer = SegmentWriter::new(id());
    let long = run(LINE_BYTES + 10);
    writer.push(1, 0, long.clone().into()).unwrap();
    let object = writer.finish().joined();
    let place =
        SegmentRange { segment: id(), offset: 0, skipped: LINE_BYTES - 1, run: long.len() as u32, stored: None };
    let behind = LINE_BYTES as usize;
    for cut in [0, 1, behind - 1, behind, behind + 1, behind + 3, behind + 4, behind + 14, behind + 17, behind + 18] {
        let pieces = [object.slice(..cut), object.slice(cut..cut + 1), object.slice(cut + 1..)];
        let mut read = [0; 5];
        let copy = |at: usize, bytes: &[u8]| read[at..at + bytes.len()].copy_from_slice(bytes);
        copy_lines(&place, 5, Pieces::behind(&pieces, 0), copy);
        assert_eq!(read, long[behind - 1..behind + 4], "cut at {cut}");
        let skipped = Pieces::behind(&pieces, behind + 4);
        assert_eq!(skipped.remaining(), object.len() - behind - 4);
        let last = SegmentRange { skipped: LINE_BYTES, ..place.clone() };
        let mut read = Vec::new();
        copy_lines(&last, 10, skipped, |_, bytes| read.extend_from_slice(bytes));
        assert_eq!(read, long[behind..], "cut at {cut}");
    }
    assert_eq!(Pieces::behind(&[object], 1 << 20).remaining(), 0);
}

// rule: The whole lines of a segment are sent from the memory that holds them.
#[test]
fn whole_lines_are_not_copied() {
    let mut writer = SegmentWriter::new(id());
    let long = Bytes::from(run(3 * LINE_BYTES + 10));
    writer.push(1, 0, long.clone()).unwrap();
    let own = long.as_ptr_range();
    let parts = writer.finish().0;
    let (kept, copied): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| own.contains(&part.as_ptr()));
    assert_eq!(kept.concat(), long[..3 * LINE_BYTES as usize]);
    assert_eq!(copied.concat().len(), 4 * 4 + 10 + DIRECTORY_ENTRY_BYTES + FOOTER_BYTES);
}

#[test]
fn each_damaged_byte_is_noticed() {
    let mut writer = SegmentWriter::new(id());
    writer.push(1, 0, run(100).into()).unwrap();
    let object = writer.finish().joined();
    assert_eq!(object.len(), 104 + DIRECTORY_ENTRY_BYTES + FOOTER_BYTES);
    let place = SegmentRange { segment: id(), offset: 0, skipped: 0, run: 100, stored: None };
    for at in 0..object.len() {
        let mut damaged = object.to_vec();
        damaged[at] ^= 1;
        let is_line = check_lines(&place, 100, &Bytes::from(damaged[..104].to_vec())).is_ok();
        assert_eq!(is_line, at >= 104, "byte {at}");
        assert_eq!(directory(id(), &damaged).is_ok(), at < 104, "byte {at}");
    }
    let other = SegmentId { number: 301, ..id() };
    assert!(check_lines(&SegmentRange { segment: other, ..place.clone() }, 100, &object.slice(..104)).is_err());
    assert!(directory(other, &object).is_err());
    for length in 0..object.len() {
        assert!(directory(id(), &object[..length]).is_err(), "{length} bytes");
    }
}

const CODECS: [Compression; 3] = [Compression::Zstd(1), Compression::Zstd(9), Compression::Lz4];

/// Bytes of which some lines become shorter, and the second does not.
fn mixed(bytes: u32) -> Bytes {
    let mut noise = 1_u32;
    let mut at_random = || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    };
    let is_noise = |at: u32| at / LINE_BYTES == 1 || at.is_multiple_of(5);
    (0..bytes).map(|at| if is_noise(at) { at_random() } else { b'a' + (at % 7) as u8 }).collect()
}

/// Makes a segment of a raw run, this run and another raw run. Returns the place of this run.
fn segment_with(compression: Compression, run_bytes: &Bytes) -> (Bytes, SegmentRange) {
    let mut writer = SegmentWriter::new(id());
    writer.push(1, 0, run(100).into()).unwrap();
    let mut compressor = RunCompressor::new(compression, run_bytes.clone()).unwrap();
    let mut coder = Coder::new(compression);
    while compressor.step(&mut coder) {}
    let compressed = compressor.finish().expect("it becomes shorter");
    let stored = Some(std::sync::Arc::clone(&compressed.stored));
    let offset = writer.push_compressed(2, 4096, run_bytes.len(), compressed).unwrap();
    writer.push(3, 0, run(100).into()).unwrap();
    let place = SegmentRange { segment: id(), offset, skipped: 0, run: run_bytes.len() as u32, stored };
    (writer.finish().joined(), place)
}

/// The extent as a reader of its record knows it.
fn recorded(place: &SegmentRange, skipped: u32, bytes: u32) -> SegmentRange {
    let source = ExtentSource::Segment(SegmentRange { skipped: place.skipped + skipped, ..place.clone() });
    let extent = StoredExtent { start: 0, end: u64::from(bytes), source };
    let (_, read) = StoredExtent::decode(&StoredExtent::key(9, extent.end), &extent.value()).unwrap();
    assert_eq!(read, extent);
    let ExtentSource::Segment(place) = read.source else { panic!("{read:?}") };
    place
}

// rule: An extent's record is enough to find and read its part of a compressed run.
#[test]
fn parts_of_compressed_runs_are_read_by_their_records() {
    let long = mixed(4 * LINE_BYTES + 10);
    for compression in CODECS {
        let (object, place) = segment_with(compression, &long);
        assert!(object.len() < long.len() * 3 / 4, "{} bytes", object.len());
        let entries = directory(id(), &object).unwrap();
        assert_eq!(entries.iter().map(|entry| entry.stored.is_some()).collect::<Vec<_>>(), [false, true, false]);
        assert!(stored_lines(&entries[1].place(id()), place.run).eq(stored_lines(&place, place.run)));
        for (skipped, bytes) in [
            (0, 1),
            (0, place.run),
            (LINE_BYTES - 1, 2),
            (LINE_BYTES, LINE_BYTES),
            (2 * LINE_BYTES, 5),
            (3 * LINE_BYTES + 9, LINE_BYTES + 1),
            (4 * LINE_BYTES, 10),
        ] {
            let read = recorded(&place, skipped, bytes);
            assert_eq!(lines(&read, bytes), lines(&SegmentRange { skipped, ..place.clone() }, bytes));
            let fetched = part(&object, &lines(&read, bytes));
            let expected = &long[skipped as usize..(skipped + bytes) as usize];
            assert_eq!(check_lines(&read, bytes, &fetched).unwrap(), expected, "{compression:?} {skipped}");
            // A cut of a cut.
            let last = recorded(&read, bytes - 1, 1);
            let fetched = part(&object, &lines(&last, 1));
            assert_eq!(check_lines(&last, 1, &fetched).unwrap(), expected[expected.len() - 1..]);
        }
    }
}

#[test]
fn each_damaged_byte_of_a_compressed_segment_is_noticed() {
    let long = mixed(600);
    for compression in CODECS {
        let (object, place) = segment_with(compression, &long);
        let span = lines(&place, place.run);
        for at in 0..object.len() {
            let mut damaged = object.to_vec();
            damaged[at] ^= 1;
            let damaged = Bytes::from(damaged);
            let is_line = check_lines(&place, place.run, &part(&damaged, &span)).is_ok();
            assert_eq!(is_line, !span.contains(&(at as u64)), "byte {at}");
            let is_directory = directory(id(), &damaged).is_ok();
            assert_eq!(is_directory, (at as u64) < span.end + 104, "byte {at}");
        }
        for length in 0..object.len() {
            assert!(directory(id(), &object[..length]).is_err(), "{length} bytes");
        }
    }
}

// rule: A line with a right checksum makes no more bytes than it has, whatever a writer or a store put there.
#[test]
fn damaged_lines_make_no_byte_too_many() {
    for compression in CODECS {
        let (object, place) = segment_with(compression, &mixed(5_000));
        // The record says that the run is shorter than its only line.
        let shorter = SegmentRange { run: 4_500, ..place.clone() };
        let error = check_lines(&shorter, 4_500, &part(&object, &lines(&shorter, 4_500))).unwrap_err();
        assert!(matches!(error, FormatError::Compressed { length: 4_500, .. }), "{error}");
        let codec = place.stored.as_ref().unwrap().codec;
        let line = StoredLine { offset: 0, stored: 50, length: 60 };
        let mut decoder = Decoder::default();
        for bytes in [&[0xff; 50][..], &[0; 50], &object[104..154], &object[..0]] {
            assert!(decoder.decompress(codec, &line, &[bytes]).is_err());
        }
    }
}

// rule: A run that would shrink by less than a sixteenth is stored as it was written, and few lines decide.
#[test]
fn bytes_without_redundancy_stay_raw() {
    let noise = mixed(2 * LINE_BYTES).slice(LINE_BYTES as usize..);
    let noise = Bytes::from(noise.repeat(1).iter().rev().copied().collect::<Vec<_>>());
    for compression in CODECS {
        let many = Bytes::from([&noise[..], &noise[..], &mixed(LINE_BYTES * 2)[..]].concat());
        for run in [noise.clone(), many] {
            let (mut compressor, mut coder) = (RunCompressor::new(compression, run).unwrap(), Coder::new(compression));
            let mut steps = 1;
            while compressor.step(&mut coder) {
                steps += 1;
            }
            assert!(steps <= 2 && compressor.finish().is_none(), "{compression:?}");
        }
    }
    assert!(RunCompressor::new(Compression::None, noise).is_none());
}

#[test]
fn malformed_lengths_of_lines_are_refused() {
    let (_, place) = segment_with(Compression::Lz4, &mixed(LINE_BYTES + 10));
    let extent = StoredExtent { start: 0, end: u64::from(place.run), source: ExtentSource::Segment(place) };
    let (key, value) = (StoredExtent::key(9, extent.end), extent.value());
    assert_eq!(value.len(), 33 + 4 + 2 * 2);
    let refused = |at: usize, byte: u8| {
        let mut value = value.clone();
        value[at] = byte;
        StoredExtent::decode(&key, &value).map(drop).unwrap_err().to_string()
    };
    assert_eq!(refused(0, 5), "the kind of an extent is 5 instead of 1 to 4");
    assert_eq!(refused(36, 1), "the stored bytes before a line is 1 instead of 0 to 0");
    assert_eq!(refused(40, 10), "the stored length of a line is 10 instead of 0 to 9");
    assert!(StoredExtent::decode(&key, &value[..40]).is_err());
}

#[test]
fn a_segment_has_a_bound() {
    let mut writer = SegmentWriter::new(id());
    writer.push(1, 0, run(SEGMENT_BYTES_MAX).into()).unwrap();
    let error = writer.push(1, 0, vec![1].into()).unwrap_err();
    assert!(error.to_string().starts_with("the length of a run is 1 instead of 1 to 0"), "{error}");
    assert!(SegmentWriter::new(id()).push(1, 0, Bytes::new()).is_err());
}

#[test]
fn records_are_read_as_written() {
    let place = SegmentRange { segment: id(), offset: 9, skipped: 3, run: 50, stored: None };
    let in_segment = StoredExtent { start: 10, end: 57, source: ExtentSource::Segment(place) };
    let inline = StoredExtent { start: 10, end: 13, source: ExtentSource::Inline(bytes::Bytes::from_static(b"abc")) };
    assert_eq!(in_segment.value().len(), 33);
    for extent in [in_segment, inline] {
        let key = StoredExtent::key(5, extent.end);
        assert_eq!(StoredExtent::decode(&key, &extent.value()), Ok((5, extent.clone())));
        assert!(StoredExtent::decode(&key, &extent.value()[..8]).is_err());
        assert!(StoredExtent::decode(&key[1..], &extent.value()).is_err());
        assert!(StoredExtent::decode(&StoredExtent::key(5, extent.end + 1), &extent.value()).is_err());
        assert!(StoredExtent::decode(&StoredExtent::key(5, 0), &extent.value()).is_err());
    }
    let header = VolumeHeader { id: [3; 16], handle_key: [4; 16] };
    for features in [0, WITH_ACLS, COMPRESSED_RUNS] {
        assert_eq!(VolumeHeader::decode(&header.encode(features)), Ok((header.clone(), features)));
    }
    for is_clean in [false, true] {
        let lineage = Lineage { verifier: 77, is_clean };
        assert_eq!(Lineage::decode(&lineage.encode()), Ok(lineage));
    }
    let key = SegmentRecord::Live.key(id());
    assert_eq!(SegmentRecord::Live.decode(&key, &9_u64.to_be_bytes()), Ok((id(), 9)));
    assert!(SegmentRecord::Dead.decode(&key, &9_u64.to_be_bytes()).is_err());
    assert!(SegmentRecord::Live.decode(&key, &(-1_i64).to_be_bytes()).is_err());
}

#[test]
fn newer_and_older_volumes_are_refused_with_the_reason() {
    let header = VolumeHeader { id: [3; 16], handle_key: [4; 16] }.encode(0);
    let with = |at: usize, byte: u8| {
        let mut header = header.clone();
        header[at] = byte;
        VolumeHeader::decode(&header).unwrap_err().to_string()
    };
    for other in [VOLUME_FORMAT as u8 - 1, VOLUME_FORMAT as u8 + 1] {
        let refused = format!("the format of a volume is {other} instead of {VOLUME_FORMAT} to {VOLUME_FORMAT}");
        assert_eq!(with(11, other), refused);
    }
    assert_eq!(with(19, 0x80), "the volume uses the features 0x80; this version knows 0x3");
    assert!(with(0, b'x').starts_with("the header of a volume begins with"));
    assert_eq!(
        VolumeHeader::decode(&header[1..]).unwrap_err().to_string(),
        "the header of a volume has 95 bytes instead of 96 to 96"
    );
}

/// How each form stores the files below a directory: `AFFLUX_FILES=DIR cargo test -p afflux-object --lib forms_of_files
/// -- --ignored --nocapture`. Files are written whole, in runs of 8 MiB.
#[test]
#[ignore = "prints figures of files that the caller names"]
fn forms_of_files() {
    let (mut left, mut runs) = (vec![std::env::var_os("AFFLUX_FILES").expect("a directory").into()], Vec::new());
    while let Some(path) = left.pop() {
        let path: std::path::PathBuf = path;
        if path.is_dir() && !path.is_symlink() {
            left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() && !path.is_symlink() {
            let bytes = std::fs::read(path).unwrap();
            runs.extend(bytes.chunks(SEGMENT_BYTES_MAX as usize).map(Bytes::copy_from_slice));
        }
    }
    let all: usize = runs.iter().map(Bytes::len).sum();
    for compression in [1, 3, 5].map(Compression::Zstd).into_iter().chain([Compression::Lz4]) {
        let mut coder = Coder::new(compression);
        let stored = runs.iter().map(|run| {
            let mut compressor = RunCompressor::new(compression, run.clone()).unwrap();
            while compressor.step(&mut coder) {}
            compressor.finish().map_or(run.len(), |run| run.lines.iter().map(Bytes::len).sum())
        });
        let part = stored.sum::<usize>() as f64 / all as f64;
        println!("{compression:?}: {part:.3} of {} MB in {} runs", all / 1_000_000, runs.len());
    }
}
