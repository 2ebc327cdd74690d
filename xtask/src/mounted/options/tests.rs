use super::*;
use crate::words::{XtaskCmd, parsed};

fn given(words: &[&str]) -> Result<(Mounted, Storage)> {
    let XtaskCmd::Mounted(words) = parsed(&[&["mounted"], words].concat())?.subcommand else { unreachable!() };
    let storage = words.storage()?;
    Ok((words, storage))
}

#[test]
fn words_have_their_meaning() {
    let (plain, storage) = given(&[]).unwrap();
    assert!(plain.way() == Way::Bridge && storage == Storage::Directory && plain.names.is_empty() && !plain.keep);
    let words = ["fsx", "--kill-every", "15", "--store", "radosgw", "--operations", "7", "tar"];
    let (stored, storage) = given(&words).unwrap();
    assert_eq!((storage, stored.of_fsx()), (Storage::Radosgw(Some(Duration::from_secs(15))), [7, 1, 1]));
    assert_eq!(stored.names, ["fsx", "tar"]);
    let (mounted, storage) = given(&["--store", "file", "--fuse"]).unwrap();
    assert!(storage == Storage::FileStore && mounted.way() == Way::Fuse);
}

#[test]
fn words_that_a_run_would_not_obey_are_refused_with_the_reason() {
    for (words, told) in [
        (&["--kill-every", "15"][..], "--store radosgw"),
        (&["--kill-every", "15", "--store", "file"], "--store radosgw"),
        (&["--kill-every", "0", "--store", "radosgw"], "'0' is no whole number from 1"),
        (&["--store"], "--store"),
        (&["--store", "s3"], "'s3' is none of file, radosgw"),
        (&["--operations", "many"], "'many' is no whole number"),
        (&["--fast"], "--fast"),
    ] {
        let error = given(words).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
