//! Memory that a killed server left, a sample of the form of each: `samples/*.txt`. A server takes it over.
//!
//! A new form gets new samples in place of these (`AFFLUX_NEW_SAMPLES=1` writes them). The host's files are made by the
//! calls that the server of the samples got, so the samples name them. A line is an offset in bytes and the words from
//! there on.

//! rule: the form of memory that a killed server leaves changes with its number alone kept in:
//! `product/frames/src/header.rs`, `product/engine/src/recovery/mod.rs`, `product/fuse/src/mount_state.rs`

use std::convert::Infallible;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Recovered, RescuedFile};
use afflux_frames::{FILE_SLOTS, FRAME_BYTES, Layout, Memory};
use afflux_fuse::{MountState, PERSISTED_WORDS_MIN, PersistedWords};

use crate::kernel::{Kernel, ROOT, name, words};
use crate::outliving::{again, begun};

const ARENA: &str = "arena-7.txt";
const MOUNT: &str = "mount-4.txt";

/// The word of the form, in both memories.
const FORM_AT: usize = 8;

const MKDIR: u32 = 9;

/// A server that was killed before anybody got the answer to its last call.
struct Killed {
    kernel: Kernel,
    mount: PersistedWords,
    /// A file with a hole that is nowhere on the disk.
    unwritten: (u64, u64),
    /// A file of which a part was written again after its sync.
    rewritten: (u64, u64),
    last: Vec<u8>,
}

fn killed() -> Killed {
    let (kernel, mount) = begun();
    let unwritten = kernel.create(ROOT, "unwritten");
    let rewritten = kernel.create(ROOT, "rewritten");
    kernel.write(unwritten.1, 0, b"accepted").unwrap();
    kernel.write(unwritten.1, 8292, b"behind a hole").unwrap();
    kernel.write(rewritten.1, 0, &[b'1'; 1500]).unwrap();
    kernel.sync(rewritten.1).unwrap();
    kernel.write(rewritten.1, 600, b"later").unwrap();
    let last = kernel.message(MKDIR, ROOT, &[words(&[0o755, 0]), name("made")].concat());
    assert!(kernel.send(last.clone()).is_some());
    Killed { kernel, mount, unwritten, rewritten, last }
}

/// The contents of the files, as programs know them.
fn accepted() -> [Vec<u8>; 2] {
    let mut rewritten = vec![b'1'; 1500];
    rewritten[600..605].copy_from_slice(b"later");
    [[&b"accepted"[..], &[0; 8284], b"behind a hole"].concat(), rewritten]
}

fn path(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/simulated/samples").join(of)
}

/// The words that are not zero, with their offsets in bytes.
fn used(words: &PersistedWords) -> Vec<(usize, u64)> {
    let values = (**words).as_ref().iter().map(|word| word.load(Ordering::Relaxed));
    values.enumerate().filter(|(_, word)| *word != 0).map(|(at, word)| (at * 8, word)).collect()
}

fn text(words: &[(usize, u64)]) -> String {
    let mut text = String::new();
    for run in words.chunk_by(|one, next| one.0 + 8 == next.0).flat_map(|run| run.chunks(6)) {
        write!(text, "{:x}", run[0].0).unwrap();
        run.iter().for_each(|(_, word)| write!(text, " {word:x}").unwrap());
        text.push('\n');
    }
    text
}

fn sample(of: &str) -> Vec<(usize, u64)> {
    let text = std::fs::read_to_string(path(of)).unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut numbers = line.split(' ').map(|number| u64::from_str_radix(number, 16).unwrap());
        let start = numbers.next().unwrap() as usize;
        found.extend(numbers.enumerate().map(|(at, word)| (start + at * 8, word)));
    }
    found
}

fn arena(of: &Killed) -> Arc<Memory> {
    let bytes = of.kernel.volume.engine().frames().total() as usize * FRAME_BYTES;
    let memory = Memory::of_words(Layout::new(bytes as u64, FILE_SLOTS).unwrap(), sample(ARENA)).unwrap();
    assert_eq!(memory.header().check([0; 16]), Ok(()), "a new form gets another number");
    memory
}

fn mount() -> PersistedWords {
    let words: Vec<AtomicU64> = (0..PERSISTED_WORDS_MIN).map(|_| AtomicU64::new(0)).collect();
    sample(MOUNT).into_iter().for_each(|(at, word)| words[at / 8].store(word, Ordering::Relaxed));
    Arc::new(words)
}

#[test]
fn a_successor_goes_on_with_the_samples() {
    let killed = killed();
    let memory = arena(&killed);
    let verifier = memory.header().verifier();
    let recovered = Recovered::look(memory);
    assert_eq!(recovered.quarantined(), Default::default());
    assert_eq!(recovered.files().map(|(_, pages)| pages).collect::<Vec<_>>(), [2, 1]);
    let Killed { kernel, unwritten, rewritten, last, .. } = killed;
    let kernel = kernel.after_kill(recovered, MountState::inherited(mount()).unwrap());
    assert_eq!(u64::from_be_bytes(kernel.volume.write_verifier()), verifier);
    assert_eq!((kernel.mount.nodes(), kernel.mount.open_files()), (4, 2));
    assert_eq!(again(&kernel, last).map(drop), Ok(()), "the directory is made once");
    assert_eq!(kernel.mount.nodes(), 4);
    for ((node, fh), (bytes, of)) in
        [unwritten, rewritten].into_iter().zip(accepted().iter().zip(["unwritten", "rewritten"]))
    {
        assert_eq!(kernel.attributes(node).unwrap().0, bytes.len() as u64);
        assert!(kernel.read(fh, 0, 1 << 16).unwrap() == *bytes, "{of}");
        kernel.sync(fh).unwrap();
        assert!(kernel.disk.durable(kernel.tree.file_at(&[of]).unwrap()) == *bytes, "{of}");
    }
}

/// A file of the host.
struct Home(Vec<u8>);

impl RescuedFile for Home {
    type Error = Infallible;

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Infallible> {
        let at = offset as usize;
        self.0.resize(self.0.len().max(at + bytes.len()), 0);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn set_size(&mut self, size: u64) -> Result<(), Infallible> {
        self.0.resize(size as usize, 0);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn a_rescue_writes_the_sample_home() {
    let recovered = Recovered::look(arena(&killed()));
    let on_disk = [Vec::new(), vec![b'1'; 1500]];
    let keys: Vec<_> = recovered.files().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), on_disk.len());
    for (key, (bytes, wanted)) in keys.iter().zip(on_disk.into_iter().zip(accepted())) {
        let mut home = Home(bytes);
        recovered.write_home(key, &mut home).unwrap_or_else(|never| match never {});
        assert!(home.0 == wanted, "{key:?}");
    }
}

#[test]
fn the_present_form_has_samples() {
    let killed = killed();
    let arena: Vec<_> = killed.kernel.volume.engine().frames().memory().used_words().collect();
    for (of, words) in [(ARENA, arena), (MOUNT, used(&killed.mount))] {
        if std::env::var_os("AFFLUX_NEW_SAMPLES").is_some() {
            std::fs::write(path(of), text(&words)).unwrap();
        }
        let form = |words: &[(usize, u64)]| words.iter().find(|(at, _)| *at == FORM_AT).unwrap().1;
        assert_eq!(form(&sample(of)), form(&words), "a new form gets a new sample in place of {of}");
        assert!(of.contains(&format!("-{}.", form(&words))), "{of}");
    }
}
