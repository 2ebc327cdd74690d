use std::fs::{File, OpenOptions};

use super::{Claim, claim, unclaim};
use crate::scratch::Scratch;

fn opened(scratch: &Scratch, write: bool) -> File {
    OpenOptions::new().read(true).write(write).open(scratch.path().join("file")).unwrap()
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    let scratch = Scratch::new();
    File::create(scratch.path().join("file")).unwrap();
    let (one, other, writer) = (opened(&scratch, false), opened(&scratch, false), opened(&scratch, true));
    assert!(claim(&one, Claim::Shared).unwrap());
    assert!(claim(&other, Claim::Shared).unwrap());
    assert!(!claim(&writer, Claim::Alone).unwrap(), "somebody reads");
    drop(one);
    unclaim(&other);
    assert!(claim(&writer, Claim::Alone).unwrap());
    assert!(!claim(&other, Claim::Shared).unwrap(), "somebody writes");
    assert!(claim(&writer, Claim::Shared).unwrap(), "its own");
    assert!(claim(&other, Claim::Shared).unwrap());
}

#[test]
fn who_cannot_write_cannot_claim_to() {
    let scratch = Scratch::new();
    File::create(scratch.path().join("file")).unwrap();
    assert!(claim(opened(&scratch, false), Claim::Alone).is_err());
}
