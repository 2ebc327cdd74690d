//! The file of an arena: its lock, and the meaning of its contents.

use std::fs::{self, File};
use std::path::Path;

use afflux_scratch::Scratch;

use super::*;

fn location() -> Option<Scratch> {
    let made = Scratch::new(Path::new("/dev/shm"), "arena").ok();
    if made.is_none() {
        afflux_scratch::skipped!("/dev/shm is not there");
    }
    made
}

fn layout() -> Layout {
    Layout::new(1 << 20, 64).unwrap()
}

fn open(location: &Scratch) -> Result<(ArenaFile, ArenaContents), ArenaFileError> {
    ArenaFile::open(&location.path().join("arena"), layout(), &mut |_| {})
}

#[test]
fn memory_is_left_once_an_engine_has_used_it() {
    let Some(location) = location() else { return };
    for state in [ArenaState::Fresh, ArenaState::Serving, ArenaState::Recovering, ArenaState::Clean] {
        let (mut file, contents) = open(&location).unwrap();
        file.keep();
        let (ArenaContents::Fresh(memory) | ArenaContents::Inherited(memory)) = contents;
        memory.header().set_state(state);
        memory.header().set_verifier(state as u64 + 1);
        drop((file, memory));
        let (file, contents) = open(&location).unwrap();
        let (memory, is_inherited) = match contents {
            ArenaContents::Fresh(memory) => (memory, false),
            ArenaContents::Inherited(memory) => (memory, true),
        };
        assert_eq!(is_inherited, matches!(state, ArenaState::Serving | ArenaState::Recovering), "{state:?}");
        let expected = if is_inherited { state as u64 + 1 } else { 0 };
        assert_eq!((memory.header().verifier(), memory.header().holder()), (expected, std::process::id()));
        file.remove(&memory).unwrap();
    }
}

/// A found file may have data that clients believe accepted.
#[test]
fn a_start_that_fails_leaves_the_file_that_it_found_and_none_that_it_made() {
    let Some(location) = location() else { return };
    let path = location.path().join("arena");
    drop(open(&location).unwrap());
    assert!(!path.exists(), "nobody was told of its contents");
    let (mut file, contents) = open(&location).unwrap();
    let (ArenaContents::Fresh(memory) | ArenaContents::Inherited(memory)) = contents;
    memory.header().set_state(ArenaState::Serving);
    file.keep();
    drop((file, memory));
    drop(open(&location).unwrap());
    assert!(path.exists(), "an earlier server left it");
}

/// The lock is of the open file, so that a second opening in one process is a second server.
#[test]
fn one_opening_at_a_time_has_the_file() {
    let Some(location) = location() else { return };
    let (file, contents) = open(&location).unwrap();
    let Err(ArenaFileError::InUse { process }) = open(&location).map(drop) else { panic!("it is in use") };
    assert_eq!(process, std::process::id());
    drop((file, contents));
    open(&location).unwrap();
}

/// The service manager has a description of the memory as long as it stores it.
#[test]
fn the_lock_of_memory_in_the_store_ends_with_its_holder() {
    let open = |inherited: Vec<(String, OwnedFd)>| {
        let (mut store, mut refused) = (DescriptorStore::with(inherited), Vec::new());
        let opened =
            ArenaFile::in_store(&mut store, layout(), &mut |_| {}, &mut |error| refused.push(error.to_string()));
        opened.map(|(file, contents)| (file, contents, refused))
    };
    let stored = |file: &ArenaFile| match &file.location {
        FoundAt::Store(memory) => (IN_STORE.to_owned(), memory.try_clone().unwrap()),
        FoundAt::Path(path) => panic!("{}", path.display()),
    };
    let (mut first, contents, refused) = open(Vec::new()).unwrap();
    let ArenaContents::Fresh(memory) = contents else { panic!("nobody left it") };
    assert!(refused.is_empty());
    memory.header().set_state(ArenaState::Serving);
    memory.header().set_verifier(7);
    first.keep();
    let kept = stored(&first);
    let again = (kept.0.clone(), kept.1.try_clone().unwrap());
    let Err(ArenaFileError::InUse { process }) = open(vec![again]).map(drop) else { panic!("it is in use") };
    assert_eq!(process, std::process::id());
    let again =
        vec![(kept.0.clone(), kept.1.try_clone().unwrap()), (kept.0.clone(), File::open("/dev/null").unwrap().into())];
    drop((first, memory));
    let (second, contents, refused) = open(again).unwrap();
    let ArenaContents::Inherited(memory) = contents else { panic!("a server left it") };
    assert_eq!((memory.header().verifier(), refused), (7, vec!["it is no regular file".to_owned()]));
    memory.header().set_state(ArenaState::Clean);
    drop((second, memory));
    let (_third, contents, refused) = open(vec![kept]).unwrap();
    assert!(matches!(contents, ArenaContents::Fresh(_)) && refused.is_empty(), "everything was written");
}

/// A predecessor may remove the file after its successor has opened it.
#[test]
fn a_removed_file_is_not_gone_on_with() {
    let Some(location) = location() else { return };
    let path = location.path().join("arena");
    let (file, contents) = open(&location).unwrap();
    let ArenaContents::Fresh(memory) = contents else { panic!("fresh") };
    let before = fs::metadata(&path).unwrap().len();
    file.remove(&memory).unwrap();
    assert!(!path.exists());
    let _second = open(&location).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
}

#[test]
fn a_full_file_system_is_said_when_the_file_is_made() {
    let Some(location) = location() else { return };
    let all = Layout::new(all_memory_bytes(), 64).unwrap();
    let here = rustix::fs::statfs(location.path()).unwrap();
    if here.f_blocks * here.f_bsize as u64 >= all.bytes() as u64 {
        afflux_scratch::skipped!("/dev/shm may take all memory of this machine");
        return;
    }
    let Err(error) = ArenaFile::open(&location.path().join("arena"), all, &mut |_| {}) else {
        panic!("a tmpfs took all memory of the machine")
    };
    assert!(matches!(error, ArenaFileError::NoSpace { bytes } if bytes == all.bytes() as u64), "{error}");
    assert!(!location.path().join("arena").exists(), "no page stays");
}

/// All memory of the machine, in whole frames.
fn all_memory_bytes() -> u64 {
    let total = rustix::system::sysinfo();
    let bytes = total.totalram * u64::from(total.mem_unit);
    bytes / 4096 * 4096
}
