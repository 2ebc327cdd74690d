use std::fs::{File, OpenOptions};

use super::{FileClaim, claim, unclaim};
use afflux_scratch::TestDirectory as Scratch;

fn opened(scratch: &Scratch, write: bool) -> File {
    OpenOptions::new().read(true).write(write).open(scratch.path().join("file")).unwrap()
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let scratch = Scratch::new();
    File::create(scratch.path().join("file")).unwrap();
    let (one, other, writer) = (opened(&scratch, false), opened(&scratch, false), opened(&scratch, true));
    assert!(claim(&one, FileClaim::Shared).unwrap());
    assert!(claim(&other, FileClaim::Shared).unwrap());
    assert!(!claim(&writer, FileClaim::Alone).unwrap(), "somebody reads");
    drop(one);
    unclaim(&other);
    assert!(claim(&writer, FileClaim::Alone).unwrap());
    assert!(!claim(&other, FileClaim::Shared).unwrap(), "somebody writes");
    assert!(claim(&writer, FileClaim::Shared).unwrap(), "its own");
    assert!(claim(&other, FileClaim::Shared).unwrap());
}

#[test]
fn who_cannot_write_cannot_claim_to() {
    let scratch = Scratch::new();
    File::create(scratch.path().join("file")).unwrap();
    assert!(claim(opened(&scratch, false), FileClaim::Alone).is_err());
}
