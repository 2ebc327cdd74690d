//! A mount that hangs blocks only the users of its files. The mount is a FUSE server in this process, with one file in
//! memory.

//! rule: a mount that hangs delays no file of another mount
//! kept in: `product/afflux/src/files.rs`, `product/afflux/src/upkeep.rs`

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use afflux::{Cache, Caching, OpenOptions};

/// Longer than any step here may take unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

const GETATTR: u32 = 3;
const FLUSH: u32 = 25;

/// The kinds of requests that get no answer. Later requests of other kinds are answered.
#[derive(Default)]
struct Hangs {
    kinds: Mutex<(Vec<u32>, usize)>,
    changed: Condvar,
}

/// The mount. Dropping it unmounts it, which ends the hanging calls.
struct Mounted {
    path: PathBuf,
    hangs: Arc<Hangs>,
}

impl Mounted {
    fn new(place: &Path) -> Option<Self> {
        let path = place.join("mounted");
        std::fs::create_dir(&path).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        // The command passes its standard input to the kernel.
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", options, "afflux-test"]).arg(&path);
        let mounted = mount.stdin(Stdio::from(device.try_clone().unwrap())).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            afflux_scratch::skipped!("nothing can be mounted here");
            return None;
        }
        let hangs = Arc::<Hangs>::default();
        let own = Arc::clone(&hangs);
        std::thread::spawn(move || serve(device, &own));
        Some(Self { path, hangs })
    }

    fn file(&self) -> PathBuf {
        self.path.join("file")
    }

    fn hang(&self, kinds: &[u32]) {
        *self.hangs.kinds.lock().unwrap() = (kinds.to_vec(), 0);
    }

    /// Waits until a request hangs.
    fn has_hung(&self) {
        let kinds = self.hangs.kinds.lock().unwrap();
        let (kinds, waited) = self.hangs.changed.wait_timeout_while(kinds, PATIENCE, |(_, hung)| *hung == 0).unwrap();
        assert!(!waited.timed_out(), "nothing hangs: {kinds:?}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A forced unmount makes hanging calls fail.
        let _ = Command::new("umount").args(["-f", "-l"]).arg(&self.path).output();
    }
}

/// Answers until the mount is gone.
fn serve(mut device: File, hangs: &Hangs) {
    let (mut request, mut bytes) = (vec![0; 1 << 20], Vec::new());
    while let Ok(count) = device.read(&mut request) {
        let word = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let long = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (kind, unique, node) = (word(4), &request[8..16], long(16));
        let hung = {
            let mut kinds = hangs.kinds.lock().unwrap();
            let hung = kinds.0.contains(&kind);
            kinds.1 += usize::from(hung);
            hung
        };
        if hung {
            hangs.changed.notify_all();
            continue;
        }
        let body = &request[40..count];
        let answer = match kind {
            // LOOKUP
            1 if body == b"file\0" => Ok([words(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), attributes(2, bytes.len())].concat()),
            1 => Err(2),
            // FORGET, INTERRUPT, BATCH_FORGET
            2 | 36 | 42 => continue,
            GETATTR => Ok([words(&[0; 4]), attributes(node, bytes.len())].concat()),
            // SETATTR, with the size in its field if the first word says so.
            4 => {
                if word(40) & 8 != 0 {
                    bytes.resize(long(56) as usize, 0);
                }
                Ok([words(&[0; 4]), attributes(node, bytes.len())].concat())
            }
            // OPEN, OPENDIR
            14 | 27 => Ok(words(&[0; 4])),
            // READ
            15 => {
                let (from, len) = (long(48) as usize, word(56) as usize);
                Ok(bytes.iter().skip(from).take(len).copied().collect())
            }
            // WRITE
            16 => {
                let (from, len) = (long(48) as usize, word(56) as usize);
                bytes.resize(bytes.len().max(from + len), 0);
                bytes[from..from + len].copy_from_slice(&request[80..80 + len]);
                Ok(words(&[len as u32, 0]))
            }
            // STATFS: blocks, free, available; their size.
            17 => Ok(words(&[1 << 20, 0, 1 << 20, 0, 1 << 20, 0, 0, 0, 0, 0, 4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])),
            // RELEASE, FSYNC, FLUSH, RELEASEDIR
            18 | 20 | FLUSH | 29 => Ok(Vec::new()),
            // INIT: 7.31, without flags; the largest write.
            26 => Ok(words(&[7, 31, 65_536, 0, 0, 131_072, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            // ENOSYS: the kernel works without it.
            _ => Err(38),
        };
        let (error, body) = answer.map_or_else(|errno: i32| (-errno, Vec::new()), |body| (0, body));
        let head = [&(16 + body.len() as u32).to_ne_bytes()[..], &error.to_ne_bytes(), unique].concat();
        let _ = device.write(&[head, body].concat());
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `struct fuse_attr`.
fn attributes(node: u64, size: usize) -> Vec<u8> {
    let mode = if node == 1 { 0o040_755 } else { 0o100_666 };
    let longs = [node, size as u64, size.div_ceil(512) as u64, 1, 1, 1].map(u64::to_ne_bytes).concat();
    [longs, words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])].concat()
}

fn read_write() -> OpenOptions {
    OpenOptions::new().read(true).write(true)
}

/// Runs the work, which may hang, on a thread of its own.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, end) = channel();
    std::thread::spawn(move || told.send(work()));
    end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: it hangs"))
}

/// Every operation on a file beside the mount.
fn others_go_on(cache: &Cache, place: &Path) {
    let (cache, path) = (cache.clone(), place.join("fine"));
    ends("a file beside the mount", move || {
        for round in 0..3_u8 {
            let file = cache.create(&path).unwrap();
            file.write_at(&[round; 50_000], 0).unwrap();
            file.sync_all().unwrap();
            cache.drop_clean_pages();
            // On the reactor, which must not wait for the host.
            smol::block_on(async {
                let mut bytes = [9; 50_000];
                file.read_exact_at_async(&mut bytes, 0).await.unwrap();
                assert_eq!(bytes, [round; 50_000]);
                assert_eq!(file.metadata_async().await.unwrap().len(), 50_000);
                drop(file);
                drop(cache.open_async(&path, OpenOptions::new().read(true)).await.unwrap());
            });
            assert!(cache.stats().files >= 1);
        }
    });
}

fn cache() -> Cache {
    let built = Cache::builder().memory(4 << 20).caching(Caching::Buffered).drain_time(Duration::from_secs(1));
    built.knob(afflux::Knob::ReserveBytes, 0).build().unwrap()
}

#[test]
fn a_close_that_hangs_keeps_no_other_file() {
    for kind in [GETATTR, FLUSH] {
        let place = tempfile::tempdir().unwrap();
        let Some(mounted) = Mounted::new(place.path()) else { return };
        let cache = cache();
        let file = cache.open(mounted.file(), read_write()).unwrap();
        file.write_at(&[1; 10_000], 0).unwrap();
        file.sync_data().unwrap();
        mounted.hang(&[kind]);
        std::thread::spawn(move || drop(file));
        mounted.has_hung();
        others_go_on(&cache, place.path());
        let (own, path) = (cache.clone(), mounted.file());
        std::thread::spawn(move || drop(own.open(path, read_write())));
        others_go_on(&cache, place.path());
        ends("the end of the cache", move || drop(cache.close()));
    }
}

/// The cache itself looks at a file without a handle, and closes it.
#[test]
fn what_the_cache_itself_asks_of_a_mount_that_hangs_keeps_no_other_file() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::new(place.path()) else { return };
    let cache = cache();
    let file = cache.open(mounted.file(), read_write()).unwrap();
    file.write_at(&[1; 10_000], 0).unwrap();
    // The dirty file keeps its descriptor until it has been written, which the mount does.
    drop(file);
    mounted.hang(&[GETATTR]);
    cache.drain().unwrap();
    mounted.has_hung();
    others_go_on(&cache, place.path());
    ends("the end of the cache", move || drop(cache.close()));
}
