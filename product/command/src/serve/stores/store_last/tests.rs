mod store_claim;

use std::fs;

use afflux_object::{EndedWriter, VolumeHeader};
use afflux_scratch::Scratch;

use super::{LastWriter, StateDirectory};
use crate::private_directory::Missing;

const WRITER: EndedWriter = EndedWriter { epoch: 7, verifier: u64::MAX };

fn header(id: u8) -> VolumeHeader {
    VolumeHeader { id: [id; 16], handle_key: [0; 16] }
}

#[test]
fn a_writer_is_known_as_ended_once_its_process_holds_the_file_no_more() {
    let scratch = Scratch::guarded(&std::env::temp_dir(), "last-writer").unwrap();
    let state = StateDirectory::at(Some(scratch.path()), Missing::Make).ok().unwrap();
    let take = |id: u8| LastWriter::take(&state, &header(id));
    let first = take(1).unwrap();
    assert_eq!(first.ended(), None);
    first.note(WRITER);
    assert!(take(1).is_none(), "its writer lives");
    assert_eq!(take(2).unwrap().ended(), None);
    drop(first);
    let second = take(1).unwrap();
    assert_eq!(second.ended(), Some(WRITER));
    let shorter = EndedWriter { epoch: 8, verifier: 1 };
    second.note(shorter);
    drop(second);
    assert_eq!(take(1).unwrap().ended(), Some(shorter));
}

#[test]
fn a_note_of_another_start_or_a_cut_one_tells_nothing() {
    let scratch = Scratch::guarded(&std::env::temp_dir(), "last-writer").unwrap();
    let state = StateDirectory::at(Some(scratch.path()), Missing::Make).ok().unwrap();
    let take = || LastWriter::take(&state, &header(1)).unwrap();
    take().note(WRITER);
    let path = scratch.path().join(format!("volume-{:032x}", u128::from_be_bytes([1; 16])));
    let whole = fs::read_to_string(&path).unwrap();
    for end in 0..whole.len() - 1 {
        fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(take().ended(), None, "{end}");
    }
    fs::write(&path, whole.replacen(|digit: char| digit.is_ascii_hexdigit(), "x", 1)).unwrap();
    assert_eq!(take().ended(), None);
    fs::write(&path, &whole).unwrap();
    assert_eq!(take().ended(), Some(WRITER));
    let last = take();
    let child = last.file.try_clone().unwrap();
    drop(last);
    assert_eq!(take().ended(), Some(WRITER), "a child that has not begun its program keeps no lock");
    drop(child);
    // No file of another directory is written through a link.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(scratch.path().join("elsewhere"), &path).unwrap();
    assert!(LastWriter::take(&state, &header(1)).is_none());
    assert!(!scratch.path().join("elsewhere").exists());
}
